"""Do the closed laws of gradient flow describe descent on samples?"""
