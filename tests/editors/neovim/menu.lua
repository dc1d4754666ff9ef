-- What can be done about a kernel: hints and their fixes, the menu, the workload, figures, checks, and ideas.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks, desk = dofile(here .. '/checks.lua'), dofile(here .. '/desk.lua')
local check, wait = checks.check, checks.wait

local ACCESS = 'y[row * cols + col] = a * x'

local DIRECTIVE = [[
// cuda-lsp: workload
//   size     rows = 4096, cols = 4096
//   buffer   x: f32[rows * cols] in
//   buffer   y: f32[rows * cols] out
//   launch   scale_add<<<dim3((rows + 15) / 16, (cols + 15) / 16), dim3(16, 16)>>>(x, y, 2.0f, rows, cols)
]]

local function hint_at(number)
  return function()
    return vim.iter(vim.lsp.inlay_hint.get({ bufnr = desk.buffer })):find(function(one)
      return one.inlay_hint.label == '16 sectors per request (4 would do)'
        and one.inlay_hint.position.line == number - 1
    end)
  end
end

local function inlay_hints()
  local number, line = desk.line_of(ACCESS)
  local hint = wait(120, hint_at(number)) -- it is counted when nothing else wants the processors
  check('a counted fact stands at its line', hint, vim.lsp.inlay_hint.get({ bufnr = desk.buffer }))
  check('at the end of it', hint and hint.inlay_hint.position.character == #line, hint)
  check('it says where it was counted', hint and hint.inlay_hint.tooltip:find('9 blocks of 16x16 threads'), hint)
  vim.cmd.redraw()
  local drawn = vim.api.nvim_buf_get_extmarks(desk.buffer, -1, { number - 1, 0 }, { number - 1, -1 }, { details = true })
  check('and is drawn', vim.inspect(drawn):find('16 sectors per request', 1, true), drawn)
  desk.edit(0, 0, { '// one line more' })
  check('it moves with its line', wait(20, hint_at(number + 1)), vim.lsp.inlay_hint.get({ bufnr = desk.buffer }))
  desk.undo()
end

local function menu()
  desk.to('int row =')
  desk.choose('Review the rewrite')
  desk.clear_messages()
  vim.cmd('CudaLsp')
  check('the menu has all that can be done', wait(10, function()
    return #desk.listed == 12
  end), desk.listed)
  local reason = 'no rewrite of scale_add was proposed yet: optimize it first'
  check('with the reason where it cannot', vim.list_contains(
    desk.listed, ('Review the rewrite of scale_add (not now: %s)'):format(reason)), desk.listed)
  check('which is said when it is taken', desk.told(reason), desk.messages())
  for kind, count in pairs({ ['refactor.rewrite.cuda.optimize'] = 3, ['refactor.rewrite.cuda.check'] = 3 }) do
    desk.choose('none of them')
    vim.lsp.buf.code_action({ context = { diagnostics = {}, only = { kind } } })
    check('kinds are a hierarchy: ' .. kind, wait(10, function()
      return #desk.listed == count
    end), desk.listed)
  end
  desk.choose('Review the rewrite')
  desk.clear_messages()
  vim.lsp.buf.code_action({ context = { diagnostics = {}, only = { 'refactor.rewrite.cuda' } } })
  check("the editor's own menu refuses with the reason too", desk.told(reason), desk.messages())
end

---Takes a quick fix through the editor's own menu.
local function fix(word, title)
  desk.to(word)
  desk.choose(title)
  vim.lsp.buf.code_action({ context = { diagnostics = {}, only = { 'quickfix' } } })
end

local function quick_fixes()
  local before = desk.text()
  local number, line = desk.line_of(ACCESS)
  wait(20, function()
    return #vim.diagnostic.get(desk.buffer) > 0
  end)
  fix('y[row', 'Silence M3')
  check('a quick fix silences a hint', wait(10, function()
    return desk.text() == before:gsub(vim.pesc(line), '        // cuda-lsp: ignore[M3]\n%0')
  end), { desk.text(), desk.listed })
  check('another would try the idea', vim.list_contains(
    desk.listed, 'Verify and apply index-exchange to scale_add'), desk.listed)
  check('the hint goes', wait(20, function()
    return #vim.diagnostic.get(desk.buffer) == 0
  end), vim.diagnostic.get(desk.buffer))
  desk.undo()
  check('one undo brings it back', desk.text() == before, desk.text())

  desk.edit(number - 1, number, { (line:gsub(';', ' * 0.1;')) })
  local typed = desk.text()
  check('double arithmetic is hinted at', wait(20, function()
    return vim.iter(vim.diagnostic.get(desk.buffer)):any(function(one)
      return one.code == 'A1'
    end)
  end), vim.diagnostic.get(desk.buffer))
  fix('0.1', 'Verify and apply: Write 0.1f')
  check('a quick fix mends it, once it is proved', wait(120, function()
    return desk.text() == typed:gsub('0%.1;', '0.1f;')
  end), { desk.text(), desk.listed })
  desk.undo()
  desk.undo()
  check('undone byte for byte', desk.text() == before, desk.text())
end

local function workload()
  local before = desk.text()
  desk.to('int row =')
  vim.cmd('CudaLsp workload')
  check('the workload is written above the kernel', wait(20, function()
    return desk.text() == before:gsub('__global__', DIRECTIVE .. '%0')
  end), desk.text())
  desk.undo()
  check('and taken back', desk.text() == before, desk.text())
end

local function figures_and_checks()
  local missing = 'nothing can be measured here'
  desk.expect('benchmark says what is missing and estimates', 'CudaLsp benchmark', missing, 60)
  check('for the card that it names', desk.told('Estimated on H200: '), desk.messages())
  desk.expect('there is nothing to verify yet', 'CudaLsp verify saved', 'there is no change to verify', 60)

  local before = desk.text()
  local number, line = desk.line_of(ACCESS)
  desk.edit(number - 1, number, { (line:gsub('a %* x', 'a + x')) })
  local wrong = 'scale_add against the saved file: wrong'
  desk.choose('against the saved file')
  desk.expect('a wrong change is found out', 'CudaLsp verify', wrong, 90)
  desk.undo()
  local first, row = desk.line_of('int row =')
  local _, col = desk.line_of('int col =')
  desk.edit(first - 1, first + 1, { (row:gsub('threadIdx.x', 'threadIdx.y')), (col:gsub('threadIdx.y', 'threadIdx.x')) })
  local right = desk.text()
  vim.cmd('silent write')
  desk.expect('a right one is right, saved and against HEAD', 'CudaLsp verify HEAD', 'against the file at HEAD: right', 90)
  check('verifying writes nothing', desk.text() == right, desk.text())
  desk.undo()
  vim.cmd('silent write')
  check('back to what it was', desk.text() == before, desk.text())
end

local function ideas()
  desk.to()
  desk.choose('Try index-exchange')
  vim.cmd('CudaLsp ideas plan')
  check('ideas come in words', wait(60, function()
    return desk.asked:find('exchange threadIdx.x and threadIdx.y', 1, true)
  end), { desk.asked, desk.listed, desk.messages() })
  check('the idea that was picked is tried', wait(90, desk.has_lens('Review')), desk.titles())
  local before = desk.text()
  local right = desk.review()
  check('and is what is reviewed', desk.text(right):find('blockDim.x + threadIdx.y;', 1, true), desk.text(right))
  desk.accept(right)
  desk.undo()
  check('undo takes it back', desk.text() == before, desk.text())
end

checks.run(function()
  checks.start_plugin()
  desk.open()
  inlay_hints()
  menu()
  quick_fixes()
  workload()
  figures_and_checks()
  ideas()
end)
