"""In which stacks does depth amplify the ratio of two demonstrations' flows? Does width help?"""
