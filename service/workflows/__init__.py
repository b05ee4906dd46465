"""The use cases: register, append, answer, correct, erase, sign in.

A use case says in which order the rooms below are asked. Each audience has one facade: `analyst`, `curator`,
`individual` and `auditor`. `replica` puts all parts of one process together. Neither SQL nor HTTP is known here.
"""
