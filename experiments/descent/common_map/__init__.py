"""How far are softmax, causal masks, norms and MLPs from one linear map?"""
