"""What may be asked: the closed query language, its public schema, its canonical form and its public cost. Pure."""
