-- What a user of Neovim does with one CUDA file, and what can be seen of it.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks = dofile(here .. '/checks.lua')
local check, wait = checks.check, checks.wait

local M = {
  buffer = 0, ---@type integer
  client = nil, ---@type vim.lsp.Client
  progress = {}, ---@type string[]
  listed = {}, ---@type string[] the entries of the last menu
  asked = '', ---@type string what the last menu was about
  cleared = 1, ---@type integer where the messages begin that were not cleared
}

vim.api.nvim_create_autocmd('LspProgress', {
  callback = function(event)
    local value = event.data.params.value
    M.progress[#M.progress + 1] = ('%s %s'):format(value.kind, value.message or value.title or '')
  end,
})

---Opens a sample and waits for the server.
---@param name? string else the small one
function M.open(name)
  vim.cmd.edit(vim.fn.fnameescape(vim.env.WORKSPACE .. '/' .. (name or 'scale.cu')))
  M.buffer = vim.api.nvim_get_current_buf()
  M.client = wait(20, function()
    local found = vim.lsp.get_clients({ bufnr = M.buffer, name = 'cuda_lsp' })[1]
    return found and found.initialized and found
  end)
  check('the server attaches', M.client, vim.lsp.get_clients())
end

---@param of? integer a buffer, else the file's
---@return string
function M.text(of)
  return table.concat(vim.api.nvim_buf_get_lines(of or M.buffer, 0, -1, false), '\n')
end

---@param lines string[] in place of those from `first` to `last`, counted from 0
function M.edit(first, last, lines)
  vim.api.nvim_buf_set_lines(M.buffer, first, last, false, lines)
  M.typed()
end

---Neovim says this by itself where keys are read, which a script does not.
function M.typed()
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = M.buffer })
end

function M.undo()
  vim.cmd('silent undo')
  M.typed()
end

---@return string[]
function M.titles()
  return vim.tbl_map(function(lens)
    return lens.command.title
  end, vim.lsp.codelens.get(M.buffer))
end

---@param word string
---@return fun(): integer?
function M.has_lens(word)
  return function()
    return table.concat(M.titles(), '\n'):find(word, 1, true)
  end
end

---@return integer[]
function M.diff_windows()
  return vim.tbl_filter(function(window)
    return vim.wo[window].diff
  end, vim.api.nvim_tabpage_list_wins(0))
end

---@param word string
---@return integer number, string line
function M.line_of(word)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(M.buffer, 0, -1, false)) do
    if line:find(word, 1, true) then
      return number, line
    end
  end
  error('no line with ' .. word)
end

---Puts the cursor on a word of the file.
---@param word? string else the kernel's name
function M.to(word)
  local number, line = M.line_of(word or '__global__')
  vim.api.nvim_win_set_cursor(0, { number, word and line:find(word, 1, true) - 1 or 17 })
end

---Answers the next menus with the entry that has a word in it.
---@param word string
function M.choose(word)
  M.listed, M.asked = {}, ''
  vim.ui.select = function(items, options, done)
    M.asked = options.prompt
    M.listed = vim.tbl_map(options.format_item or tostring, items)
    for index, label in ipairs(M.listed) do
      if label:find(word, 1, true) then
        return done(items[index], index)
      end
    end
    done(nil)
  end
end

---Answers the next questions for a text.
---@param text string
function M.type(text)
  vim.ui.input = function(options, done)
    M.asked = options.prompt
    done(text)
  end
end

---@return string what the plugin keeps of all that the server said
local function kept()
  local window = vim.api.nvim_get_current_win()
  vim.cmd('noautocmd CudaLsp messages')
  local whole = M.text(0)
  vim.cmd('noautocmd close')
  vim.api.nvim_set_current_win(window)
  return whole
end

---All messages since they were last cleared.
---@return string
function M.messages()
  return vim.fn.execute('messages') .. '\n' .. kept():sub(M.cleared)
end

function M.clear_messages()
  vim.cmd.messages('clear')
  M.cleared = #kept() + 1
end

---Whether a message came that has a word in it, with line ends read as blanks.
---@param word string
---@param seconds? number
function M.told(word, seconds)
  return wait(seconds or 10, function()
    return M.messages():gsub('%s+', ' '):find(word, 1, true)
  end)
end

---Runs a command of ours whose answer is a message.
---@param name string of the check
---@param command string
---@param word string
---@param seconds? number
function M.expect(name, command, word, seconds)
  M.clear_messages()
  M.to()
  vim.cmd(command)
  check(name, M.told(word, seconds), M.messages())
end

---Opens the best proposal, which has to be a diff.
---@return integer buffer of the right side
function M.review()
  M.to()
  vim.cmd('CudaLsp review')
  check('a review is a diff of two windows', wait(10, function()
    return #M.diff_windows() == 2
  end), vim.api.nvim_list_wins())
  return vim.api.nvim_get_current_buf()
end

---Accepts what is shown, which has to be written exactly as it is shown.
---@param right integer the right side
function M.accept(right)
  local promised = M.text(right)
  vim.api.nvim_feedkeys('a', 'x', false)
  check('accept writes exactly what was shown', wait(20, function()
    return M.text() == promised
  end), M.text())
  check('and closes the review', wait(10, function()
    return not vim.api.nvim_buf_is_valid(right) and #M.diff_windows() == 0
  end), vim.api.nvim_list_wins())
end

return M
