-- What a buffer gets when the server attaches: lenses and hints.
local M = {}

local group = vim.api.nvim_create_augroup('cuda_lsp_buffer', {})

-- Neovim 0.12 keeps lenses fresh by itself once they are enabled; 0.11 has to be told when to ask.
local automatic = vim.lsp.codelens.enable ~= nil

---Asks for new lenses in each buffer of a client.
---@param client_id integer
function M.refresh_lenses(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for buffer in pairs(client and client.attached_buffers or {}) do
    if vim.api.nvim_buf_is_loaded(buffer) and not automatic then
      vim.lsp.codelens.refresh({ bufnr = buffer })
    end
  end
end

---@param client vim.lsp.Client
---@param buffer integer
local function show_lenses(client, buffer)
  if not client:supports_method('textDocument/codeLens') then
    return
  end
  if automatic then
    vim.lsp.codelens.enable(true, { bufnr = buffer })
    return
  end
  vim.lsp.codelens.refresh({ bufnr = buffer })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged' }, {
    group = group,
    buffer = buffer,
    callback = function()
      vim.lsp.codelens.refresh({ bufnr = buffer })
    end,
  })
end

---@param client vim.lsp.Client
---@param buffer integer
function M.attach(client, buffer)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
  show_lenses(client, buffer)
  if client:supports_method('textDocument/inlayHint') then
    vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  end
end

return M
