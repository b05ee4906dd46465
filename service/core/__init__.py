"""The privacy core: integer charges, the individual Rényi filter, exact noise, the answer. Pure."""
