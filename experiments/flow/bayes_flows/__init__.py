"""Does depth amplify up to the Bayes rule's flows and no further, and which stacks do the
opposite?"""
