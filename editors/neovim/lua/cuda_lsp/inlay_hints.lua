-- Neovim 0.11 draws new hints on an unchanged text only where no redraw came between its request and the answer: a
-- redraw meanwhile marks each line as done with the old hints. Ours change without an edit, when something was counted.
local M = {}

---@param buffer integer
---@return lsp.InlayHint[]
local function known(buffer)
  return vim.tbl_map(function(one)
    return one.inlay_hint
  end, vim.lsp.inlay_hint.get({ bufnr = buffer }))
end

---@type lsp.Handler
function M.show(err, result, context)
  local before = known(context.bufnr)
  vim.lsp.handlers['textDocument/inlayHint'](err, result, context)
  if not err and not vim.deep_equal(before, known(context.bufnr)) then
    -- Marks no line as done and asks once more: now any redraw has the new ones.
    vim.lsp.handlers['workspace/inlayHint/refresh'](nil, nil, context)
  end
end

return M
