"""The experiments: one file per figure, Config -> compute -> Dataset -> plot, claims."""

# Every experiment and the question it answers, in the order in which they are run and reported.
EXPERIMENTS: dict[str, str] = {
    "one_layer_optimum": "Does one trained layer find the optimum that theory writes down?",
    "training_dynamics": "Do the closed laws of gradient flow describe descent on samples?",
    "depth": "Do L trained layers do better than L steps of gradient descent?",
    "covariate_shift": "What does a trained layer do when test prompts have another scale?",
    "common_map": "How far are softmax, causal masks, norms and MLPs from one linear map?",
    "order": "To which models does the order of the demonstrations matter, and how much?",
    "bound_and_gap": "Does A2's bound lie above the generalisation gap, and rank as it does?",
    "implicit_trajectories": "Which algorithm do trained layers follow, layer by layer?",
    "shots_and_steps": "How does the error of transformers fall with shots and training steps?",
}
