-- Lenses on a line of their own above each kernel. Neovim 0.12 draws and renews them like that by itself; 0.11 draws
-- them at the end of the line, where a long signature leaves no room, and only when it is told to.
local M = {}

local namespace = vim.api.nvim_create_namespace('cuda_lsp_lenses')
local group = vim.api.nvim_create_augroup('cuda_lsp_lenses', {})
local built_in = vim.lsp.codelens.enable ~= nil

---@param buffer integer
---@return integer columns for text in the narrowest window that shows it
local function room(buffer)
  local least = math.huge
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local info = vim.fn.getwininfo(window)[1]
    least = math.min(least, info.width - info.textoff)
  end
  return least
end

---Titles with bars between them, in as many lines as they need: Neovim cuts a virtual line at the window's edge.
---@param titles string[]
---@param columns integer
---@return string[][][]
local function laid_out(titles, columns)
  local lines, width = { {} }, 0
  for _, title in ipairs(titles) do
    local long = vim.fn.strdisplaywidth(title)
    if width > 0 and width + 3 + long > columns then
      table.insert(lines, {})
      width = 0
    elseif width > 0 then
      table.insert(lines[#lines], { ' | ', 'LspCodeLensSeparator' })
      width = width + 3
    end
    table.insert(lines[#lines], { title, 'LspCodeLens' })
    width = width + long
  end
  return lines
end

---@param buffer integer
---@param lenses lsp.CodeLens[]
local function draw(buffer, lenses)
  local titles = {} ---@type table<integer, string[]>
  for _, lens in ipairs(lenses) do
    local number = lens.range.start.line
    titles[number] = titles[number] or {}
    table.insert(titles[number], lens.command and lens.command.title or '...')
  end
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local columns = room(buffer)
  for number, words in pairs(titles) do
    if number < vim.api.nvim_buf_line_count(buffer) then
      -- Nothing can be shown above the first line of a window that starts with it.
      local place = number == 0 and { virt_text = laid_out(words, math.huge)[1] }
        or { virt_lines = laid_out(words, columns), virt_lines_above = true }
      vim.api.nvim_buf_set_extmark(buffer, namespace, number, 0, place)
    end
  end
end

---@param client vim.lsp.Client
---@param buffer integer
local function refresh(client, buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) or client:is_stopped() then
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer) }
  client:request('textDocument/codeLens', params, function(err, lenses)
    if not err and vim.api.nvim_buf_is_loaded(buffer) then
      vim.lsp.codelens.save(lenses or {}, buffer, client.id) -- for vim.lsp.codelens.run()
      draw(buffer, lenses or {})
    end
  end, buffer)
end

---Asks for new lenses in each buffer of a client.
---@param client_id integer
function M.refresh(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for buffer in pairs(client and client.attached_buffers or {}) do
    refresh(client, buffer)
  end
end

---@param client vim.lsp.Client
---@param buffer integer
function M.enable(client, buffer)
  if built_in then
    vim.lsp.codelens.enable(true, { bufnr = buffer })
    return
  end
  vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged', 'VimResized' }, {
    group = group,
    buffer = buffer,
    callback = function()
      refresh(client, buffer)
    end,
  })
  vim.api.nvim_create_autocmd('LspDetach', {
    group = group,
    buffer = buffer,
    callback = function(event)
      if event.data.client_id == client.id then
        vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
        vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
      end
    end,
  })
  refresh(client, buffer)
end

---What is asked of the server where Neovim cannot do it by itself.
---@return fun(err: any, params: any, context: lsp.HandlerContext)?
function M.handler()
  if built_in then
    return nil
  end
  return function(_, _, context)
    M.refresh(context.client_id)
    return vim.NIL
  end
end

return M
