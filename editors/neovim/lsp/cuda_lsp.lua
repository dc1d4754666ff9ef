-- Found on the runtimepath by vim.lsp.enable('cuda_lsp'). Change any of it with vim.lsp.config('cuda_lsp', { ... }).
return require('cuda_lsp.config')
