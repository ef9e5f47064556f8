"""Providers with known conduct under each fault profile, and the truth about their pushes, which the server does not keep.

`providers` decide what is sent again, `carriers` send it with real HTTP/2 clients, `relay` records the frames between them and
the server. `oracle` computes from the frames what happened and `rules` what the verdicts must be; `comparison` compares that with
the server's verdicts, and `runner` does all of it once.
"""
