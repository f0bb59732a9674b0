"""The experiments: one file per figure, Config -> compute -> Dataset -> plot, claims."""

# Every experiment and the question it answers, in the order in which they are run and reported.
EXPERIMENTS: dict[str, str] = {
    "one_layer_optimum": "Does one trained layer find the optimum that theory writes down?",
    "training_dynamics": "Do the closed laws of gradient flow describe descent on samples?",
    "depth": "Do L trained layers do better than L steps of gradient descent?",
    "covariate_shift": "What does a trained layer do when test prompts have another scale?",
}
