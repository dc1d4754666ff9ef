if vim.g.loaded_cuda_lsp then
  return
end
vim.g.loaded_cuda_lsp = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify('cuda-lsp needs Neovim 0.11 or newer', vim.log.levels.WARN)
  return
end

local group = vim.api.nvim_create_augroup('cuda_lsp', {})
require('cuda_lsp.progress').enable(group)
vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'cuda_lsp' then
      require('cuda_lsp.lenses').enable(client, event.buf)
      vim.lsp.inlay_hint.enable(true, { bufnr = event.buf })
    end
  end,
})

vim.api.nvim_create_user_command('CudaLsp', function(call)
  require('cuda_lsp.commands').run(call)
end, {
  nargs = '*',
  desc = 'cuda-lsp: optimize, verify, review, accept ...',
  complete = function(lead, line)
    return require('cuda_lsp.commands').complete(lead, line)
  end,
})

-- let g:cuda_lsp_enable = 0 in front of this leaves the start to your own vim.lsp.enable('cuda_lsp').
if vim.g.cuda_lsp_enable ~= 0 and vim.g.cuda_lsp_enable ~= false then
  vim.lsp.enable('cuda_lsp')
end
