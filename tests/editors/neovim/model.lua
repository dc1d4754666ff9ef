-- An idea in the user's own words, and those of a model: asked for, agreed to, judged, accepted, and agreed to no more.
-- The key stays out of every log.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks, desk = dofile(here .. '/checks.lua'), dofile(here .. '/desk.lua')
local check, wait = checks.check, checks.wait

local function log_with_key()
  local files = { vim.env.WORKSPACE .. '/server.log', vim.env.WORKSPACE .. '/server.trace', vim.lsp.get_log_path() }
  return vim.iter(files):find(function(file)
    return vim.fn.filereadable(file) == 1 and table.concat(vim.fn.readfile(file), '\n'):find(vim.env.MODEL_KEY, 1, true)
  end)
end

checks.run(function()
  checks.start_plugin()
  vim.lsp.config('cuda_lsp', {
    cmd = { vim.env.CUDA_LSP, 'serve', '--log', 'server.log', '--trace', 'server.trace' },
    cmd_cwd = vim.env.WORKSPACE,
  })
  vim.lsp.set_log_level('trace')
  desk.open()
  check('a lens stands there', wait(15, desk.has_lens('Optimize')), desk.titles())
  local before = desk.text()

  desk.type('swap the indices')
  desk.choose('Never in this project')
  desk.expect('nothing is sent without consent', 'CudaLsp try', 'nothing was sent', 20)
  local asked = desk.asked
  check('what would be sent is said before', asked:find('the device code of scale_add: ', 1, true), asked)
  check('and that the key goes along', asked:find('Your key from CUDA_LSP_API_KEY', 1, true), asked)

  desk.choose('Send')
  vim.cmd('CudaLsp try')
  check('the idea is tried', wait(120, desk.has_lens('Review')), { desk.titles(), desk.messages() })
  check('nothing is written before it is accepted', desk.text() == before, desk.text())
  local right = desk.review()
  check('the rewrite is the model\'s', desk.text(right):find('swapped', 1, true), desk.text(right))
  desk.accept(right)
  desk.undo()
  check('undo takes it back', desk.text() == before, desk.text())
  desk.choose('Later')
  desk.to()
  vim.cmd('CudaLsp ideas')
  check('without consent ideas are the catalogue\'s alone', wait(60, function()
    return desk.asked:find('1 idea for scale_add: exchange threadIdx.x and threadIdx.y', 1, true)
  end), { desk.asked, desk.messages() })
  desk.expect('an answer is taken back', 'CudaLsp forget', 'your answers are forgotten', 20)
  desk.choose('Always in this project')
  vim.cmd('CudaLsp ideas')
  check('once it is allowed, the model has ideas too', wait(60, function()
    return desk.asked:find('walk straight on (idea from scripted)', 1, true)
  end), { desk.asked, desk.messages() })
  check('the logs are there', vim.fn.getfsize(vim.env.WORKSPACE .. '/server.trace') > 1000)
  check('the key is in no log', not log_with_key(), log_with_key())
end)
