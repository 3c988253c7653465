"""scan on a GPU through torch and Triton: the same bits as the other backends, by the same kind of proof.

A fast pass in half precision on the tensor cores decides what its error bound allows; what lies within the
bound is scored again in float64, in the fixed order. Where there is no GPU the passes have a twin in plain
torch, which is how they are tested everywhere.
"""
