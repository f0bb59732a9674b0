"""Does depth amplify the ratio of two demonstrations' flows in a language model, and does GradS,
selection by the flow, help it more than other rules do?"""
