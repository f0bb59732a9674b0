"""What follows from the answer of each experiment, for whoever reads or builds: two or three
sentences without a number, under the answer on its page. The messages of `messages.py` say which
verdicts it supposes."""

SO_WHAT = {
    "one_layer_optimum": (
        "Theory's optimum can stand in for a trained layer of linear attention on prompts like "
        "those of training. On prompts of another scale the layer keeps its one step size, and "
        "it can answer worse than no prediction. Standardised columns are not enough: on a "
        "correlated table the layer lost to the mean."
    ),
    "training_dynamics": (
        "The closed laws predict when a layer learns each direction of its data, so that a "
        "training budget can be read off the spectrum. A small eigenvalue costs training time, "
        "and final risk too. Whoever stops early keeps a layer that ignores the small "
        "directions."
    ),
    "depth": (
        "One converged linear layer is one tuned step of descent, preconditioned where covariates "
        "are correlated. Most deeper stacks do much better than the same number of steps, and they "
        "differ from GD++ both ways. Check convergence before you read an algorithm into a stack: "
        "stacks that have not converged tell another story."
    ),
    "finite_pretraining": (
        "Count tasks as well as prompts when you plan pretraining. With fewer tasks than "
        "covariates a layer learns the tasks themselves and fails on new ones. Just below the peak "
        "more prompts make new tasks worse, as in other kinds of double descent."
    ),
    "common_map": (
        "A2's theorems replace a model by one matrix a layer. Linear attention without a causal "
        "mask has it; a query that is read changes it. In random stacks softmax, causal masks, "
        "norms and MLPs leave none. Treat bounds that rest on it as statements about linear "
        "attention, and measure the missed share elsewhere."
    ),
    "noisy_descent": (
        "Noise that is fresh at each step is no model of what trained layers do: fresh "
        "demonstrations harm descent nearly as much as Gaussian noise, and its size matters more "
        "than its shape. A bound that assumes such noise describes another algorithm. Model the "
        "deviations as they are, or leave them out."
    ),
    "norms_and_updates": (
        "A norm makes updates smaller, beside their tokens, and lowers no risk here. Smaller "
        "updates therefore do not explain what norms are good for. Shrinking a model's writes "
        "helps only where labels are noisier than in training. Say whether updates are sums or "
        "means before you call them growing."
    ),
    "order": (
        "A mask, rather than depth alone, makes a model mind the order of its demonstrations. Put "
        "what is relevant and surely labelled at the end of a prompt for a causal model. An order "
        "that suits gradient descent can harm softmax attention, so tune the order on the model "
        "that will read it."
    ),
    "implicit_trajectories": (
        "Ridge regression, which takes no steps, is the nearest estimator in nearly every layer "
        "here, and the nearest of all in the last. Compare a model with the estimator that it "
        "approaches, beside the path of an algorithm. Judge each layer, and not the end alone."
    ),
    "flow_factors": (
        "A demonstration needs both factors to help: it must bear on the query, and it must be new "
        "to the model. The gradient itself does not rank demonstrations by their worth, and even "
        "the best rule often errs on a single one. Expect gains on average only."
    ),
    "amplification": (
        "Depth as such does not sort demonstrations. Random linear stacks do, at the gain of "
        "softmax too; softmax and trained stacks show little of it. A claim on amplification "
        "should name the weights, the share of pairs and whether demonstrations share a prompt."
    ),
    "many_shot_flow": (
        "Trained models end about as unequal as the Bayes rule; only linear attention listens to "
        "the very same demonstrations. The Bayes rule, rather than depth without end, is the "
        "yardstick for unequal gradients. A near-duplicate in the prompt lowers a demonstration's"
        " influence."
    ),
    "bayes_flows": (
        "When a linear stack is near the Bayes rule in risk, its gradients are near too, at every "
        "depth that comes near; no softmax stack came near enough to tell. Look at the risk first. "
        "No theorem can say that every stack amplifies: ascent finds linear ones that do the "
        "opposite, by how a layer feeds its output back."
    ),
    "grads": (
        "Gradients beat relevance on average where labels are clean, and lose where they are "
        "noisy, because the score takes noise for news. They beat the best rival nowhere. Compare "
        "with contributions computed again after each pick."
    ),
    "relevance_and_novelty": (
        "Beside other demonstrations the product of gradient and surprise still tells what one is "
        "worth on average. Linear attention orders all classes as the Bayes rule does; softmax "
        "models agree on the best and overrate the least. Take the product as an estimate of the "
        "expected gain, and not of a single one."
    ),
    "offline_encoding": (
        "Encoding a pool once by the formula of one layer is cheap and still better than random "
        "choice. It selects worse demonstrations than gradients made with the whole pool in the "
        "prompt. Use it for pools that no prompt can hold."
    ),
    "clipping_curves": (
        "Depth alone does not say which layer may be clipped: attention of the last layer costs "
        "least, but it is the second that is ruined, and not the first. MLPs tolerate clipping "
        "nearly everywhere; without its first MLP a model is lost. Measure each layer of your own "
        "model before you compress it."
    ),
    "condition_numbers": (
        "Training makes deep layers worse conditioned, but that alone is a weak guide to what may "
        "be clipped. Order W_V and W_O by depth, which tells their harm better, and test "
        "each candidate. Neither order replaces a search."
    ),
    "clipping_search": (
        "A searched clipping rate rarely helps a model on the task that it was trained for. Where"
        " it helps, on inputs too large for the model or labels without noise, an affine map of "
        "the answer does a part of it, or more. Compare any edit with this rescaling, on prompts "
        "that the search has not seen."
    ),
    "truncation_norms": (
        "Truncation lowers A2's upper bounds, but often not the quantities that they bound. A "
        "deep layer of a trained stack seems harmless because it touches little of the sum. Do not "
        "argue from one norm to another without a test."
    ),
    "bound_and_gap": (
        "The bound is valid and too large to say anything about these models. It does not rank "
        "them by their generalisation gap once the number of shots is fixed. Do not choose a "
        "model or an edit by it."
    ),
    "why_a_rate": (
        "Of four conditions a searched rate gains clearly on shifted inputs alone. The spectrum "
        "does not tell it. Spend the effort on the shift itself, and search on prompts apart from "
        "those that you report."
    ),
    "one_number": (
        "Most of what clipping changes in early layers is more than an affine map of the answers, "
        "and it seldom gains by that. An affine map, fitted on as many labels, is a rival that any "
        "edit should beat. Report the gain beyond such a map."
    ),
    "label_clipping": (
        "Accuracy hides what clipping does: these classifiers keep theirs under drastic rates, and "
        "neither an edit nor a moved threshold improves it. A tolerance in accuracy is no evidence "
        "of one in risk."
    ),
    "published_logs": (
        "A2's own logs agree that late layers tolerate clipping, though some of those models "
        "hardly beat chance. They do not show that a searched rate helps on test: selection "
        "explains the gain on validation. A rerun needs a test set apart from the search."
    ),
    "gradient_matching": (
        "Matched demonstrations teach better than random ones, so random choice is too weak a "
        "rival. Designs that see no label do as well or better when the prompt is long. Compare "
        "with them before you pay for gradients."
    ),
    "matching_is_exact": (
        "Matching gradients exactly makes subset and pool interchangeable for descent of any "
        "depth, and for softmax attention it does not. Real subsets match only nearly, and then a"
        " part of the gap stays. Read the theorem as a limit: whitened gradients come nearer to "
        "it; for selection nothing follows."
    ),
    "matching_transfer": (
        "A cheap proxy can choose demonstrations that serve larger models. It does not rank "
        "subsets that it has not chosen, so use it to select and not to score. A design that sees "
        "no gradient serves trained models too, though descents explode after it: report it beside."
    ),
    "fixed_and_per_query": (
        "Mix fixed and per-query demonstrations when clusters' tasks differ. With a "
        "single task descent gains by a mixture, too, and ridge and softmax do best with fixed "
        "demonstrations alone. Matching picks fewer spoilt examples, but flipped "
        "labels cost descent much of its gain."
    ),
    "coverage": (
        "Give the matched model an intercept and keep the gradients from before training: classes "
        "then keep their shares, by a theorem. "
        "Without one matching can distort them more than random choice does. A minority is taught "
        "no worse either way."
    ),
    "many_shots": (
        "More demonstrations than in training help if attention divides by their number. With a "
        "fixed divisor the same weights explode. Check the divisor before you blame long prompts."
    ),
    "head_placement": (
        "No placement of six heads has learned much more than ridge regression. After the longer "
        "training A4's pattern does a little better than three of nine other placements, after the "
        "shorter one it is last; the seed matters in the same degree. Train longer, with more "
        "seeds, before you call a pattern best."
    ),
    "heads_per_layer": (
        "Give heads to all layers: those in all later layers do more together than those in the "
        "first, because they are more; with equal numbers the place matters little. Models with "
        "one head a layer can still come near ridge regression. A rich first layer alone is not "
        "the best use of heads."
    ),
    "head_pruning": (
        "Do not prune later layers to one head without training again: where weights are sparse "
        "the risk rises several times. A model that was trained with one head there loses far "
        "less. Pruning therefore measures what a model uses, and not what it needs."
    ),
    "layer_probes": (
        "The answer becomes readable late, also in models with one head a layer, so that rising "
        "readability is no sign of A4's mechanism. Later layers do more than descend on what the "
        "first one wrote. Put a model with fewer heads beside a probe."
    ),
    "sparse_risk": (
        "Rules that ignore coordinates gain little from sparsity. Preprocessed descent sees them: "
        "it gains much of what the Lasso gains, and it loses where weights are dense. Choose it "
        "when sparsity is likely, and ridge otherwise."
    ),
    "preprocess_then_optimise": (
        "Preprocessing pays at once if each prompt has its own step size, and after many steps if "
        "all share one, so a model with few layers has to adapt its steps. Fewer heads than "
        "covariates leave covariates unseen. Trained models (`heads_per_layer`) do as well with "
        "half as many in the first layer, and worse with half everywhere."
    ),
    "learning_curves": (
        "The closed curve of a recurrent rule predicts what one trained layer reaches. For LMS, "
        "and for DeltaNet that reads labels as they are, it predicts what the layer keeps on "
        "longer prompts. A layer with a fixed step stays at a "
        "floor, however long the prompt is. Choose a layer by its curve before you train it."
    ),
    "lm_clipping": (
        "A late layer's attention can be clipped in this language model; its MLP keeps the order "
        "of answers on reviews alone, and loses accuracy on both. Early attention is needed. A "
        "searched edit gains accuracy on average, but a threshold fitted on the same labels gains "
        "more. Calibrate before you edit weights."
    ),
    "lm_one_number": (
        "An edit of a language model that is chosen for accuracy may only move its threshold. Look "
        "at the order of its answers and at the calibrated loss beside accuracy. Compare each "
        "searched edit with one threshold, and with a random edit as large."
    ),
    "lm_flow": (
        "Early layers of this language model amplify lone gradients, later ones do not; those of "
        "one prompt grow on news, and on IMDB it is open. Choosing demonstrations by gradients is "
        "worse than chance; what a demonstration adds follows its label, on reviews in part. "
        "Similarity beat that choice here; start there."
    ),
    "lm_gradient_matching": (
        "What matching gains on this language model seems to be the shares of labels, and an "
        "empty prompt does as well here. Draw demonstrations with the pool's shares first, at no "
        "cost. Claims for matching should stand beside such a draw, and beside an empty prompt."
    ),
    "lm_heads": (
        "Of four later layers (paper tier) one head does nearly all in that which answers need "
        "most, several in another; two hardly matter, and their counts say little. One head a "
        "layer leaves nothing of this language model's order of answers. The pattern of A4's "
        "regression models does not carry over."
    ),
    "lm_family": (
        "With few words, and copying in its mixture, a decoder of two layers learns to read label"
        " words, late and then at once. With more words and texts two layers learn in as many "
        "steps to copy, and no label words; without copying, neither. Measure what a decoder "
        "learns in context before its flows or heads are read."
    ),
}
