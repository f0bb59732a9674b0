"""Does GradS, selection by the flow, help a language model more than other rules do?"""
