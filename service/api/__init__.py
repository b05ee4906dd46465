"""ROOM 7: HTTP. One route module per audience, one onion of layers, one shape of error. No privacy is decided here."""
