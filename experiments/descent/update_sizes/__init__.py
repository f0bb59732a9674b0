"""How large are implicit updates with more demonstrations, and what does a norm change?"""
