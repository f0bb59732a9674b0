"""In which layers do heads help, up to how many, and which rules do the models then beat?"""
