module sweep.invalid/go-upstream

go 1.19
