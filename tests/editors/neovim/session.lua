-- One user's session with a kernel: look, break, mend, optimize, accept, undo, reject, cancel.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks = dofile(here .. '/checks.lua')
local check, wait = checks.check, checks.wait

local buffer, client ---@type integer, vim.lsp.Client

local function text(of)
  return table.concat(vim.api.nvim_buf_get_lines(of or buffer, 0, -1, false), '\n')
end

local function titles()
  return vim.tbl_map(function(lens)
    return lens.command.title
  end, vim.lsp.codelens.get(buffer))
end

local function has_lens(word)
  return function()
    return table.concat(titles(), '\n'):find(word, 1, true)
  end
end

local function diff_windows()
  return vim.tbl_filter(function(window)
    return vim.wo[window].diff
  end, vim.api.nvim_tabpage_list_wins(0))
end

local function line_of(word)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    if line:find(word, 1, true) then
      return number, line
    end
  end
  error('no line with ' .. word)
end

local function to_kernel()
  vim.api.nvim_win_set_cursor(0, { line_of('__global__'), 17 })
end

local progress = {} ---@type string[]
vim.api.nvim_create_autocmd('LspProgress', {
  callback = function(event)
    local value = event.data.params.value
    progress[#progress + 1] = ('%s %s'):format(value.kind, value.message or value.title or '')
  end,
})

---Answers the next choice with the entry that has a word in it.
local function choose(word)
  vim.ui.select = function(items, options, done)
    for index, item in ipairs(items) do
      local label = options.format_item and options.format_item(item) or item
      if label:find(word, 1, true) then
        return done(item, index)
      end
    end
    done(nil)
  end
end

local function look()
  vim.cmd.edit(vim.fn.fnameescape(vim.env.WORKSPACE .. '/scale.cu'))
  buffer = vim.api.nvim_get_current_buf()
  check('the file is CUDA', vim.bo.filetype == 'cuda', vim.bo.filetype)
  client = wait(15, function()
    local found = vim.lsp.get_clients({ bufnr = buffer, name = 'cuda_lsp' })[1]
    return found and found.initialized and found
  end)
  check('the server attaches', client, vim.lsp.get_clients())
  check('columns are bytes', client.offset_encoding == 'utf-8', client.offset_encoding)

  check('a lens offers to optimize', wait(15, has_lens('Optimize')), titles())
  local drawn = vim.api.nvim_buf_get_extmarks(buffer, -1, 0, -1, { details = true })
  check('lenses are drawn above the kernel', vim.iter(drawn):any(function(mark)
    return mark[2] == line_of('__global__') - 1 and vim.inspect(mark[4].virt_lines or {}):find('Optimize')
  end), drawn)

  to_kernel()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local words = ''
  local function hover_has(word)
    return function()
      local hover = client:request_sync('textDocument/hover', params, 10000, buffer)
      words = hover and hover.result and hover.result.contents.value or ''
      return words:find(word, 1, true)
    end
  end
  check('hover says the signature', hover_has('scale_add(const float* x, float* y')(), words)
  check('hover says the workload', wait(20, hover_has('rows=4096')), words)
end

local function break_and_mend()
  local before = text()
  local number, line = line_of('y[row * cols')
  vim.api.nvim_buf_set_lines(buffer, number - 1, number, false, { '        /* é */ nowhere = 1;', line })
  local found = wait(30, function()
    return vim.iter(vim.diagnostic.get(buffer)):find(function(one)
      return one.message:find('nowhere', 1, true)
    end)
  end)
  check('the compiler is heard', found, vim.diagnostic.get(buffer))
  -- The compiler names the line; its end counts é as two bytes.
  local at = found and { found.lnum, found.col, found.end_col }
  check('at the right place', vim.deep_equal(at, { number - 1, 8, 29 }), found)
  vim.cmd('silent undo')
  check('undo restores the text', text() == before, text())
  check('and the diagnostic goes', wait(30, function()
    return #vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR }) == 0
  end), vim.diagnostic.get(buffer))
end

local function optimize()
  to_kernel()
  progress = {}
  choose('the launch may change')
  vim.cmd('CudaLsp optimize')
  check('progress begins', wait(15, function()
    return progress[1] and vim.startswith(progress[1], 'begin')
  end), progress)
  check('a proposal is ready', wait(90, has_lens('Review')), { titles(), progress })
  check('progress told of stages and ended', #progress > 3 and vim.startswith(progress[#progress], 'end'), progress)
end

---@return integer buffer of the right side
local function review()
  to_kernel()
  vim.cmd('CudaLsp review')
  check('a review is a diff of two windows', wait(10, function()
    return #diff_windows() == 2
  end), vim.api.nvim_list_wins())
  return vim.api.nvim_get_current_buf()
end

local function edit_inside()
  local before = text()
  local number = line_of('int row =')
  vim.api.nvim_buf_set_lines(buffer, number, number, false, { '    // typed inside' })
  check('an edit inside makes it outdated', wait(10, has_lens('outdated')), titles())
  local edited = text()
  to_kernel()
  vim.cmd('CudaLsp review')
  check('then its diff alone is shown', wait(10, function()
    return text(0):find('--- a/', 1, true) and #diff_windows() == 0
  end), text(0))
  vim.api.nvim_feedkeys('a', 'x', false)
  check('accept says why not', wait(10, function()
    return vim.fn.execute('messages'):find('this proposal is outdated', 1, true)
  end), vim.fn.execute('messages'))
  check('and writes nothing', text() == edited, text())
  vim.api.nvim_feedkeys('q', 'x', false)
  check('a review is closed with q', vim.api.nvim_get_current_buf() == buffer, vim.api.nvim_list_wins())
  vim.cmd('silent undo')
  check('undone, it is ready again', wait(10, has_lens('right')) and text() == before, titles())
end

local function accept_then_reject()
  vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { '// é typed after the search' })
  local before = text()
  local right = review()
  check('the right side is a rewrite', text(right) ~= before and text(right):find('threadIdx.y', 1, true), text(right))
  local words = vim.iter(vim.api.nvim_tabpage_list_wins(0)):map(vim.api.nvim_win_get_buf):map(text):join('\n')
  check('with its verdict below', words:find('right %(emulated.*same precision.*est%. %d%.%d+x'), words)
  vim.cmd.redraw()
  check('changed lines stand out', vim.fn.diff_hlID(line_of('int row ='), 51) ~= 0)
  check('both sides are copies that cannot be edited', vim.iter(diff_windows()):all(function(window)
    local shown = vim.api.nvim_win_get_buf(window)
    return shown ~= buffer and not vim.bo[shown].modifiable
  end))

  local promised = text(right)
  vim.api.nvim_feedkeys('a', 'x', false)
  check('the edit elsewhere is in it', vim.startswith(promised, '// é typed after the search'), promised)
  check('accept writes exactly what was shown', wait(20, function()
    return text() == promised
  end), text())
  check('accept closes the review', wait(10, function()
    return not vim.api.nvim_buf_is_valid(right) and #diff_windows() == 0
  end), vim.api.nvim_list_wins())
  vim.cmd('silent undo')
  check('one undo takes it back', text() == before, text())

  right = review()
  vim.ui.input = function(_, done)
    done('too clever')
  end
  vim.api.nvim_feedkeys('r', 'x', false)
  check('reject closes the review', wait(10, function()
    return not vim.api.nvim_buf_is_valid(right) and #diff_windows() == 0
  end), vim.api.nvim_list_bufs())
  check('reject writes nothing', text() == before, text())
  check('and the lens offers it no longer', wait(10, function()
    return not has_lens('Review')()
  end), titles())
end

local function cancel_and_leave()
  to_kernel()
  progress = {}
  choose('the launch may change')
  vim.cmd('CudaLsp optimize')
  wait(15, function()
    return progress[1]
  end)
  vim.cmd('CudaLsp cancel')
  check('cancel ends the job', wait(15, function()
    return progress[#progress] and vim.startswith(progress[#progress], 'end')
  end), progress)

  client:stop()
  check('the server stops', wait(10, function()
    return client:is_stopped()
  end))
end

checks.run(function()
  checks.start_plugin()
  look()
  break_and_mend()
  optimize()
  edit_inside()
  accept_then_reject()
  cancel_and_leave()
end)
