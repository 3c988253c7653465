"""scan on a GPU through torch and Triton: the same bits as the other backends, by the same kind of proof.

A fast pass in half precision on the tensor cores decides what its error bound allows; scores within the bound
are computed again in float64, in the fixed order. Without a GPU the pass runs in plain torch, so that it can
be tested everywhere.
"""
