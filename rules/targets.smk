# A paper's name runs the paper and executes its notebook, PAPER/FIGURE that figure, a figure's name that of every paper that has one so called.
from bbrlab.campaign.targets import targets_of

for target, chosen in targets_of(FIGURES).items():

    rule:
        name:
            target
        input:
            [f"{AT_SCALE}/{id}.claims.txt" for id in chosen],
            [f"{AT_SCALE}/{target}.ipynb"] if target in PAPERS else [],
