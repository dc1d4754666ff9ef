-- Prints one line a check; ends Neovim with the right exit code.
local M = {}
local failed = 0

---@param name string
---@param holds any
---@param seen any what was there instead, printed on failure
function M.check(name, holds, seen)
  if holds then
    io.stdout:write(('ok   %s\n'):format(name))
  else
    failed = failed + 1
    io.stdout:write(('FAIL %s  %s\n'):format(name, vim.inspect(seen)))
  end
  io.stdout:flush()
end

---Waits until a function gives something true.
---@generic T
---@param seconds number
---@param probe fun(): T
---@return T
function M.wait(seconds, probe)
  local value
  vim.wait(seconds * 1000, function()
    value = probe()
    return value
  end, 20)
  return value
end

---Runs the checks; an error in them is a failed check of its own.
---@param body fun()
function M.run(body)
  local fine, message = xpcall(body, debug.traceback)
  if not fine then
    M.check('no error', false, message)
  end
  vim.cmd(failed > 0 and 'cquit 1' or 'qall!')
end

---The plugin as a start-up would load it: scripts given with -l run before plugins are.
function M.start_plugin()
  vim.cmd('filetype plugin indent on')
  vim.cmd.syntax('enable')
  vim.cmd.runtime('plugin/cuda_lsp.lua')
  vim.lsp.config('cuda_lsp', { cmd = { vim.env.CUDA_LSP, 'serve' } })
end

return M
