-- What a job is doing, on the last line. Neovim 0.12 shows it in its status line; 0.11 leaves it to plugins.
local M = {}

---@param event { data: { client_id: integer, params: lsp.ProgressParams } }
local function show(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  local value = event.data.params.value
  -- The end is told by a message of its own; while something is typed the last line is the user's.
  if not client or client.name ~= 'cuda_lsp' or not vim.api.nvim_get_mode().mode:match('^n$') then
    return
  end
  if value.kind == 'end' then
    M.title = nil
    if value.message == 'cancelled' then
      vim.api.nvim_echo({ { 'cuda-lsp: cancelled' } }, false, {})
    end
    return
  end
  M.title = value.title or M.title
  local percent = value.percentage and (' %d %%'):format(value.percentage) or ''
  local line = ('%s:%s %s'):format(M.title or 'cuda-lsp', percent, (value.message or ''):gsub('%s+', ' '))
  vim.api.nvim_echo({ { vim.fn.strcharpart(line, 0, vim.v.echospace), 'Comment' } }, false, {})
end

---@param group integer
function M.enable(group)
  if vim.ui.progress_status == nil then
    vim.api.nvim_create_autocmd('LspProgress', { group = group, callback = show })
  end
end

return M
