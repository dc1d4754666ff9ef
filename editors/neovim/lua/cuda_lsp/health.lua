-- :checkhealth cuda_lsp
local M = {}

---@param command string[]
---@return boolean ok, string output
local function run(command)
  local started, process = pcall(vim.system, command, { text = true, timeout = 20000 })
  if not started then
    return false, tostring(process)
  end
  local result = process:wait()
  return result.code == 0, vim.trim((result.stdout or '') .. (result.stderr or ''))
end

local function check_editor()
  vim.health.start('Neovim')
  if vim.fn.has('nvim-0.11') == 1 then
    vim.health.ok(tostring(vim.version()))
  else
    vim.health.error(('%s; cuda-lsp needs 0.11 or newer'):format(vim.version()))
  end
  if vim.lsp.is_enabled == nil or vim.lsp.is_enabled('cuda_lsp') then
    vim.health.ok('cuda_lsp is enabled')
  else
    vim.health.warn('cuda_lsp is not enabled', "vim.lsp.enable('cuda_lsp')")
  end
end

---@return string? program
local function check_server()
  vim.health.start('Server')
  local command = vim.lsp.config.cuda_lsp and vim.lsp.config.cuda_lsp.cmd
  if type(command) ~= 'table' then
    vim.health.info('started by a function of your own configuration')
    return nil
  end
  if vim.fn.executable(command[1]) == 0 then
    vim.health.error(
      ('%s is not on the PATH'):format(command[1]),
      { 'pip install "cuda-lsp[cuda13]"', "or vim.lsp.config('cuda_lsp', { cmd = { '/path/to/cuda-lsp', 'serve' } })" }
    )
    return nil
  end
  local ok, version = run({ command[1], '--version' })
  if ok then
    vim.health.ok(('%s: %s'):format(vim.fn.exepath(command[1]), version))
  else
    vim.health.error(('%s --version failed: %s'):format(command[1], version))
  end
  local clients = vim.lsp.get_clients({ name = 'cuda_lsp' })
  vim.health.info(#clients == 0 and 'not running: it starts with the first CUDA buffer' or 'running')
  return ok and command[1] or nil
end

---Whether the server is given a key for a language model; the key itself is never shown.
local function check_key()
  local own = vim.tbl_get(vim.lsp.config, 'cuda_lsp', 'cmd_env', 'CUDA_LSP_API_KEY')
  local given = (own or vim.env.CUDA_LSP_API_KEY or '') ~= ''
  vim.health.info(given and 'CUDA_LSP_API_KEY is set' or 'CUDA_LSP_API_KEY is not set; only a language model needs it')
end

---@param program string
local function check_machine(program)
  vim.health.start('Machine (cuda-lsp doctor)')
  local _, output = run({ program, 'doctor', '--json' })
  local decoded, report = pcall(vim.json.decode, output, { luanil = { object = true } })
  if not decoded then
    vim.health.error('cuda-lsp doctor failed: ' .. output)
    return
  end
  for _, capability in ipairs(report.capabilities) do
    local line = ('%s: %s'):format(capability.name, capability.detail)
    if capability.present then
      vim.health.ok(line)
    elseif capability.required then
      vim.health.error(line, capability.mend)
    else
      vim.health.warn(line, capability.mend)
    end
  end
end

function M.check()
  check_editor()
  local program = check_server()
  check_key()
  if program then
    check_machine(program)
  end
end

return M
