-- A proposal as a diff in a tab of its own: the document as it is, what it would become, and the verdict below.
-- Both sides are copies: whether the document is still the one that was judged is the server's to decide on accept.
local M = {}

---@class cuda_lsp.Review what the server says of a proposal (docs/protocol.md)
---@field id string
---@field uri string
---@field kernel string
---@field title string
---@field verdict string
---@field evidence string[]
---@field note string
---@field original string the whole document
---@field proposed? string the whole document with the rewrite in it; null where it is to be applied by hand
---@field diff string

---@type table<integer, { client: integer, id: string, tab: integer }> by buffer of a review
local shown = {}

---@return { client: integer, id: string, tab: integer }?
local function current()
  local review = shown[vim.api.nvim_get_current_buf()]
  if not review then
    vim.notify('cuda-lsp: no proposal is shown here; :CudaLsp review opens one', vim.log.levels.INFO)
  end
  return review
end

---Closes the review. The buffer that it was for stays as it is.
---@param review { id: string, tab: integer }
local function close(review)
  if vim.api.nvim_tabpage_is_valid(review.tab) then
    vim.cmd.tabclose(vim.api.nvim_tabpage_get_number(review.tab))
  end
  for buffer, other in pairs(shown) do
    if other.id == review.id then
      shown[buffer] = nil
    end
  end
end

---@param review { client: integer, id: string, tab: integer }
---@param command string
---@param arguments any[]
local function finish(review, command, arguments)
  local client = vim.lsp.get_client_by_id(review.client)
  if not client then
    vim.notify('cuda-lsp has stopped', vim.log.levels.ERROR)
    return
  end
  client:request('workspace/executeCommand', { command = command, arguments = arguments }, function(err, done)
    if err then
      vim.notify('cuda-lsp: ' .. err.message, vim.log.levels.ERROR)
    elseif done then
      close(review)
    end
  end)
end

---Asks the server to write the shown rewrite into the buffer.
function M.accept()
  local review = current()
  if review then
    finish(review, 'cuda-lsp.accept', { review.id })
  end
end

---Puts the shown rewrite away; nothing is written.
---@param reason string may be empty
function M.reject(reason)
  local review = current()
  if review then
    finish(review, 'cuda-lsp.reject', { review.id, reason })
  end
end

---A buffer of ours: read-only, gone when it is no longer shown.
---@param text string
---@param name string
---@param filetype string
---@return integer
local function scratch(text, name, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split((text:gsub('\n$', '')), '\r?\n'))
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].syntax = filetype -- not 'filetype': that would start the server on it
  return buffer
end

---@param buffer integer
local function map(buffer)
  local function key(lhs, plug, what, run)
    vim.keymap.set('n', plug, run, { buffer = buffer, desc = what })
    vim.keymap.set('n', lhs, plug, { buffer = buffer, desc = what, remap = true, nowait = true })
  end
  key('a', '<Plug>(CudaLspAccept)', 'accept this rewrite', M.accept)
  key('r', '<Plug>(CudaLspReject)', 'reject this rewrite, with a reason', function()
    vim.ui.input({ prompt = 'Why? (kept; may be empty) ' }, function(reason)
      if reason then
        M.reject(reason)
      end
    end)
  end)
  key('q', '<Plug>(CudaLspClose)', 'close this review', function()
    local review = current()
    if review then
      close(review)
    end
  end)
end

---What was found out, in a line or more each.
---@param review cuda_lsp.Review
---@return string[]
local function words(review)
  local lines = { review.title, review.verdict }
  vim.list_extend(lines, review.evidence)
  if review.note ~= '' then
    table.insert(lines, review.note)
  end
  return lines
end

---Shows the words in a window below, as high as they need.
---@param review cuda_lsp.Review
---@param side fun(text: string, label: string, filetype: string): integer
local function show_words(review, side)
  local lines = words(review)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / vim.o.columns))
  end
  vim.cmd(('botright %dsplit'):format(math.min(height, 10) + 1))
  vim.api.nvim_win_set_buf(0, side(table.concat(lines, '\n'), 'verdict', ''))
  vim.wo.winbar = '%#Title#a accept   r reject   q close%*'
  vim.wo.winfixheight = true
  vim.wo.wrap = true
  vim.wo.diff = false
end

---@param review cuda_lsp.Review
---@param client integer
function M.open(review, client)
  for buffer, other in pairs(shown) do
    if other.id == review.id and vim.api.nvim_buf_is_valid(buffer) then
      close(other)
      break
    end
  end
  local name = vim.fs.basename(vim.uri_to_fname(review.uri))
  local entry = { client = client, id = review.id }
  local function side(text, label, filetype)
    local buffer = scratch(text, ('cuda-lsp://%s/%s/%s'):format(review.id, label, name), filetype)
    shown[buffer] = entry
    map(buffer)
    return buffer
  end
  if type(review.proposed) == 'string' then
    vim.cmd('tab sbuffer ' .. side(review.original, 'now', 'cuda'))
    vim.cmd.diffthis()
    vim.cmd('rightbelow vertical sbuffer ' .. side(review.proposed, 'rewrite', 'cuda'))
    vim.cmd.diffthis()
  else
    vim.cmd('tab sbuffer ' .. side(review.diff, 'diff', 'diff'))
  end
  entry.tab = vim.api.nvim_get_current_tabpage()
  local window = vim.api.nvim_get_current_win()
  show_words(review, side)
  vim.api.nvim_set_current_win(window)
  vim.cmd('normal! gg')
  vim.cmd('silent! normal! ]c')
end

return M
