"""What does a trained layer do when test prompts have another scale?"""
