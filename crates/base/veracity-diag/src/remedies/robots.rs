//! Pictures, robots and pages.

use super::{Remedy, remedies};

remedies! {
    PICTURE_MISFIT
        "A description that is to be drawn has an edge without a node, or a port twice.",
        "Check the bundle with `veracity verify`; for a description of your own correct the \
         edge.";
    PICTURE_TOO_LARGE
        "There are more nodes, edges or pixels than a picture can show.",
        "An SVG can be larger than a PNG; draw parts of the pipeline.";
    PICTURE_UNPAINTED
        "There is no memory for the pixels, or drawing ended in a fault of Veracity.",
        "Write an SVG. If it is a fault, please report it; exporting is not affected.";
    PICTURE_FORMAT
        "The ending of the file says which kind of picture to write, and this one says nothing.",
        "Let it end in `.svg` or `.png`.";
    CONTRACT_INVALID
        "A name stands twice, a list has the wrong length, a value is no number, or a port of \
         the robot could be several of the bundle.",
        "Correct it at the place of the message; name ports as `node/port` where a name alone \
         is not enough.";
    ROBOT_PORT_MISSING
        "The bundle needs an input that the robot does not declare (an error), or gives an \
         output that it ignores (a warning).",
        "Declare it in the robot file, or export without it.";
    ROBOT_PORT_EXTRA
        "The robot file or the recorded values name a port that the bundle does not have.",
        "Correct the name, or remove the entry.";
    ELEMENT_MISSING
        "The bundle names elements, such as joints, that the robot does not have.",
        "Compare the names in the message; they may be spelled differently. Else the policy is \
         for another robot.";
    ELEMENT_EXTRA
        "The robot names elements that the bundle does not have.",
        "Leave them out of this port in the robot file, or export for this robot.";
    ELEMENT_ORDER
        "Both sides have the same names in different order, so that values would go to the \
         wrong joints.",
        "`veracity verify BUNDLE --robot ROBOT --write-map map.yaml`, then run with `--map \
         map.yaml`.";
    UNIT_DIFFERS
        "One side measures in another unit, or in one that cannot be converted.",
        "Convert where the value is made; the hint has the factor. A map does not convert.";
    KIND_DIFFERS
        "A port means one thing to the bundle and another to the robot: a position and a \
         velocity, say.",
        "Correct the declaration that is wrong, or connect the right value.";
    RATE_DIFFERS
        "The policy was made for another rate than the robot runs at, or history is spaced \
         differently.",
        "Run at the bundle's rate (`--rate bundle`), or train for the robot's.";
    GAIN_DIFFERS
        "Stiffness, damping, defaults, scales or limits differ from those of the training.",
        "Set the robot to the bundle's numbers; allow what is meant with `--gain-rtol`.";
    SIZE_DIFFERS
        "Sizes or dtypes of a port differ between the two sides, or names are more or fewer \
         than elements.",
        "Convert on the robot's side; nothing is converted silently.";
    VALUES_PERMUTED
        "The recorded values of the robot are those of the bundle in another order than the \
         names say.",
        "One side's names are wrong. Correct them, or write the map where the order is the only \
         one that fits.";
    VALUES_DIFFER
        "The recorded values of the robot are not those of the bundle in any order.",
        "Make sure that both recordings are of the same passes; allow noise with `--atol`, \
         `--rtol`; look for units and offsets.";
    CONTRACT_UNCHECKED
        "Only one side says something about it, so that there is nothing to compare.",
        "Declare it on the other side, too. Until then it is unchecked, which is not agreement.";
    REORDER_MISFIT
        "The map is damaged, or was made for other names or sizes than the bundle has.",
        "Write it again with `veracity verify BUNDLE --robot ROBOT --write-map map.yaml`.";
    RESULTS_UNKNOWN
        "The file is neither a proof nor a drift report nor the log of a transformation, or is damaged.",
        "`veracity check --output FILE`, `veracity drift --save FILE` and `veracity transform` write such \
         files.";
    VIEW_UNSERVED
        "The loopback address cannot be listened on, often inside of a sandbox, or the system gives \
         no random numbers for the address of the page.",
        "Make the page as a file with `veracity report RESULTS` and open that.";
}
