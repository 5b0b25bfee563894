"""A checked kernel of a script as an operator of a fork: values, and the text of every file that the operator needs."""
