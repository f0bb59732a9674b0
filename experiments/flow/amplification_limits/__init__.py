"""Where does depth amplify, and which stacks do the opposite?"""
