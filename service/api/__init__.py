"""ROOM 7: HTTP. One route module per audience, nested layers around them, one shape of error.

No privacy is decided here.
"""
