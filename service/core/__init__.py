"""The privacy core: integer charges, the individual Rényi filter, exact noise and the answer. All of it is pure."""
