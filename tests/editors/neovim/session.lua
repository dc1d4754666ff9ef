-- One user's session with a kernel: look, break, mend, optimize, accept, undo, reject, cancel.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks, desk = dofile(here .. '/checks.lua'), dofile(here .. '/desk.lua')
local check, wait = checks.check, checks.wait

local function look()
  desk.open()
  check('the file is CUDA', vim.bo.filetype == 'cuda', vim.bo.filetype)
  check('columns are bytes', desk.client.offset_encoding == 'utf-8', desk.client.offset_encoding)

  check('a lens offers to optimize', wait(15, desk.has_lens('Optimize')), desk.titles())
  local drawn = vim.api.nvim_buf_get_extmarks(desk.buffer, -1, 0, -1, { details = true })
  check('lenses are drawn above the kernel', vim.iter(drawn):any(function(mark)
    return mark[2] == desk.line_of('__global__') - 1 and vim.inspect(mark[4].virt_lines or {}):find('Optimize')
  end), drawn)

  desk.to()
  local params = vim.lsp.util.make_position_params(0, desk.client.offset_encoding)
  local words = ''
  local function hover_has(word)
    return function()
      local hover = desk.client:request_sync('textDocument/hover', params, 10000, desk.buffer)
      words = hover and hover.result and hover.result.contents.value or ''
      return words:find(word, 1, true)
    end
  end
  check('hover says the signature', hover_has('scale_add(const float* x, float* y')(), words)
  check('hover says the workload', wait(20, hover_has('rows=4096')), words)
end

local function break_and_mend()
  local before = desk.text()
  local number, line = desk.line_of('y[row * cols')
  desk.edit(number - 1, number, { '        /* é */ nowhere = 1;', line })
  local found = wait(30, function()
    return vim.iter(vim.diagnostic.get(desk.buffer)):find(function(one)
      return one.message:find('nowhere', 1, true)
    end)
  end)
  check('the compiler is heard', found, vim.diagnostic.get(desk.buffer))
  -- The compiler names the line; its end counts é as two bytes.
  local at = found and { found.lnum, found.col, found.end_col }
  check('at the right place', vim.deep_equal(at, { number - 1, 8, 29 }), found)
  desk.undo()
  check('undo restores the text', desk.text() == before, desk.text())
  check('and the diagnostic goes', wait(30, function()
    return #vim.diagnostic.get(desk.buffer, { severity = vim.diagnostic.severity.ERROR }) == 0
  end), vim.diagnostic.get(desk.buffer))
end

local function optimize()
  desk.to()
  desk.progress = {}
  desk.choose('the launch may change')
  vim.cmd('CudaLsp optimize')
  check('progress begins', wait(15, function()
    return desk.progress[1] and vim.startswith(desk.progress[1], 'begin')
  end), desk.progress)
  check('and says what is being done', wait(20, function()
    return require('cuda_lsp.progress').title == 'Optimizing scale_add'
  end))
  check('a proposal is ready', wait(90, desk.has_lens('Review')), { desk.titles(), desk.progress })
  local last = desk.progress[#desk.progress]
  check('progress told of stages and ended', #desk.progress > 3 and vim.startswith(last, 'end'), desk.progress)
  check('the message says how to see it', desk.told(':CudaLsp review'), desk.messages())
end

local function edit_inside()
  local before = desk.text()
  local number = desk.line_of('int row =')
  desk.edit(number, number, { '    // typed inside' })
  check('an edit inside makes it outdated', wait(10, desk.has_lens('outdated')), desk.titles())
  local edited = desk.text()
  desk.to()
  vim.cmd('CudaLsp review')
  check('then its diff alone is shown', wait(10, function()
    return desk.text(0):find('--- a/', 1, true) and #desk.diff_windows() == 0
  end), desk.text(0))
  vim.api.nvim_feedkeys('a', 'x', false)
  check('accept says why not', desk.told('this proposal is outdated'), desk.messages())
  check('and writes nothing', desk.text() == edited, desk.text())
  vim.api.nvim_feedkeys('q', 'x', false)
  check('a review is closed with q', vim.api.nvim_get_current_buf() == desk.buffer, vim.api.nvim_list_wins())
  desk.undo()
  check('undone, it is ready again', wait(10, desk.has_lens('right')) and desk.text() == before, desk.titles())
end

local function accept_then_reject()
  desk.edit(0, 0, { '// é typed after the search' })
  local before = desk.text()
  local right = desk.review()
  local promised = desk.text(right)
  check('the right side is a rewrite', promised ~= before and promised:find('threadIdx.y', 1, true), promised)
  local windows = vim.api.nvim_tabpage_list_wins(0)
  local words = vim.iter(windows):map(vim.api.nvim_win_get_buf):map(desk.text):join('\n')
  check('with its verdict below', words:find('right %(emulated.*same precision.*est%. %d%.%d+x'), words)
  vim.cmd.redraw()
  check('changed lines stand out', vim.fn.diff_hlID(desk.line_of('int row ='), 51) ~= 0)
  check('both sides are copies that cannot be edited', vim.iter(desk.diff_windows()):all(function(window)
    local shown = vim.api.nvim_win_get_buf(window)
    return shown ~= desk.buffer and not vim.bo[shown].modifiable
  end))
  check('the edit elsewhere is in it', vim.startswith(promised, '// é typed after the search'), promised)
  desk.accept(right)
  desk.undo()
  check('one undo takes it back', desk.text() == before, desk.text())

  right = desk.review()
  desk.type('too clever')
  vim.api.nvim_feedkeys('r', 'x', false)
  check('reject asks why', vim.startswith(desk.asked, 'Why?'), desk.asked)
  check('and closes the review', wait(10, function()
    return not vim.api.nvim_buf_is_valid(right) and #desk.diff_windows() == 0
  end), vim.api.nvim_list_bufs())
  check('it writes nothing', desk.text() == before, desk.text())
  check('and the lens offers it no longer', wait(10, function()
    return not desk.has_lens('Review')()
  end), desk.titles())
  local again = 'found again and not shown, as you rejected it: exchange threadIdx.x and threadIdx.y'
  desk.expect('what was rejected is not shown again', 'CudaLsp optimize drop-in', again, 90)
  check('its reason is said', desk.told('(too clever)'), desk.messages())
  check('nothing was written meanwhile', desk.text() == before, desk.text())
end

local function cancel_and_leave()
  desk.to()
  desk.progress = {}
  vim.cmd('CudaLsp optimize plan')
  wait(15, function()
    return desk.progress[1]
  end)
  vim.cmd('CudaLsp cancel')
  check('cancel ends the job', wait(15, function()
    return desk.progress[#desk.progress] == 'end cancelled'
  end), desk.progress)

  desk.client:stop()
  check('the server stops', wait(10, function()
    return desk.client:is_stopped()
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
