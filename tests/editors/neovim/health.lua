-- :checkhealth says what there is, and what to do where there is nothing.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks = dofile(here .. '/checks.lua')
local check = checks.check

local function report()
  vim.cmd('silent checkhealth cuda_lsp')
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
end

checks.run(function()
  checks.start_plugin()
  local text = report()
  check('health: the server and its version', text:find('OK ' .. vim.pesc(vim.env.CUDA_LSP) .. ': cuda%-lsp, version %d'), text)
  check('health: what the machine can do', text:find('OK NVRTC: ') and text:find('OK tree%-sitter: '), text)
  check('health: enabled', text:find('OK cuda_lsp is enabled'), text)
  check('health: no error', not text:find('ERROR'), text)

  vim.lsp.config('cuda_lsp', { cmd = { '/nowhere/cuda-lsp', 'serve' } })
  text = report()
  check('health: a missing server is an error', text:find('ERROR /nowhere/cuda%-lsp is not on the PATH'), text)
  check('health: with the way to install it', text:find('pip install'), text)
end)
