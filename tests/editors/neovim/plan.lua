-- A rewrite that puts three launches and memory in the place of a loop of launches, accepted in the editor.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks, desk = dofile(here .. '/checks.lua'), dofile(here .. '/desk.lua')
local check, wait = checks.check, checks.wait

checks.run(function()
  checks.start_plugin()
  desk.open('scan.cu')
  check('a lens offers to optimize', wait(15, desk.has_lens('Optimize')), desk.titles())
  local kernel = vim.lsp.codelens.get(desk.buffer)[1].command.arguments[1]
  local options = { scope = 'plan', only = { 'scan-in-tiles' }, rounds = 1, candidates = 1 }
  desk.client:exec_cmd({ title = '', command = 'cuda-lsp.optimize', arguments = { kernel, options } })
  local ready = wait(240, desk.has_lens('Review'))
  check('a rewrite is ready', ready, { desk.titles(), desk.messages() })
  if not ready then
    return
  end
  local before = desk.text()
  local number, line = desk.line_of('printf("scan of')
  desk.edit(number - 1, number, { line .. '  // typed inside' })
  check('an edit in the function that launches makes it outdated', wait(10, desk.has_lens('outdated')), desk.titles())
  desk.undo()
  check('undone, it is ready again', wait(10, desk.has_lens('right')) and desk.text() == before, desk.titles())
  desk.edit(0, 0, { '// é typed after the search' })
  before = desk.text()
  local right = desk.review()
  local promised = desk.text(right)
  local main = promised:sub(promised:find('int main', 1, true), -1)
  check('the review shows the host code', main:find('scan_step_tiles<<<', 1, true) and main:find('cudaFree(tile_', 1, true), main)
  desk.accept(right)
  check('with the edit elsewhere', vim.startswith(desk.text(), '// é typed after the search'), desk.text())
  desk.undo()
  check('one undo takes it all back', desk.text() == before, desk.text())
end)
