package enum Lab {}
