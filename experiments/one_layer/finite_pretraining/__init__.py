"""How many prompts and tasks teach one layer to answer new tasks?"""
