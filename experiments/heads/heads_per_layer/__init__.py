"""In which layers do heads help, and which rules do the models then beat?"""
