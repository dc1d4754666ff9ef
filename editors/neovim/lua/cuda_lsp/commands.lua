-- :CudaLsp SUBCOMMAND. What is about a kernel starts from what the server offers as code actions at the cursor.
local M = {}

---@type table<string, string> subcommand to the server's command behind a code action
local offered = {
  ideas = 'cuda-lsp.suggestIdeas',
  optimize = 'cuda-lsp.optimize',
  verify = 'cuda-lsp.verify',
  benchmark = 'cuda-lsp.benchmark',
}

---@param text string
---@param level? integer
local function say(text, level)
  vim.notify('cuda-lsp: ' .. text, level or vim.log.levels.INFO)
end

---@param buffer integer
---@return vim.lsp.Client?
local function client_of(buffer)
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'cuda_lsp' })[1]
  if not client then
    say('not attached to this buffer; see :checkhealth cuda_lsp', vim.log.levels.WARN)
  end
  return client
end

---Gives the code actions at the cursor to a function.
---@param buffer integer
---@param run fun(client: vim.lsp.Client, actions: lsp.CodeAction[])
local function with_actions(buffer, run)
  local client = client_of(buffer)
  if not client then
    return
  end
  local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
  params.context = { diagnostics = {}, triggerKind = vim.lsp.protocol.CodeActionTriggerKind.Invoked }
  client:request('textDocument/codeAction', params, function(err, actions)
    if err then
      say(err.message, vim.log.levels.ERROR)
    elseif not actions or #actions == 0 then
      say('the cursor is in no kernel, or nothing can be done to it now (a job is running, or it does not compile)')
    else
      run(client, actions)
    end
  end, buffer)
end

---@param actions lsp.CodeAction[]
---@return string
local function why_not(actions)
  for _, action in ipairs(actions) do
    if action.disabled then
      return action.disabled.reason
    end
  end
  return 'the server does not offer this here'
end

---@param buffer integer
---@param command string
local function run_offered(buffer, command)
  with_actions(buffer, function(client, actions)
    local fitting = vim.tbl_filter(function(action)
      return type(action.command) == 'table' and action.command.command == command
    end, actions)
    local function run(action)
      if action then
        client:exec_cmd(action.command, { bufnr = buffer })
      end
    end
    if #fitting == 0 then
      say(why_not(actions))
    elseif #fitting == 1 then
      run(fitting[1])
    else
      vim.ui.select(fitting, {
        prompt = 'cuda-lsp',
        format_item = function(action)
          return action.title
        end,
      }, run)
    end
  end)
end

---Runs a command that takes the kernel at the cursor first.
---@param buffer integer
---@param command string
---@param ... any further arguments
local function run_on_kernel(buffer, command, ...)
  local rest = { ... }
  with_actions(buffer, function(client, actions)
    for _, action in ipairs(actions) do
      local kernel = type(action.command) == 'table' and action.command.arguments and action.command.arguments[1]
      if kernel then
        client:exec_cmd({ title = command, command = command, arguments = { kernel, unpack(rest) } }, { bufnr = buffer })
        return
      end
    end
    say(why_not(actions))
  end)
end

---Cancels every job of the server that is under way.
---@param buffer integer
local function cancel(buffer)
  local client = client_of(buffer)
  for token in pairs(client and client.progress.pending or {}) do
    client:notify('window/workDoneProgress/cancel', { token = token })
  end
end

---Writes the workload above the kernel.
---@param buffer integer
local function describe(buffer)
  if client_of(buffer) then
    vim.lsp.buf.code_action({ context = { only = { 'refactor.rewrite.cuda.describe' } }, apply = true })
  end
end

---@type table<string, fun(buffer: integer, text: string)>
local subcommands = {
  workload = describe,
  try = function(buffer, text)
    run_on_kernel(buffer, 'cuda-lsp.tryIdea', text)
  end,
  review = function(buffer)
    run_on_kernel(buffer, 'cuda-lsp.review')
  end,
  accept = function()
    require('cuda_lsp.review').accept()
  end,
  reject = function(_, text)
    require('cuda_lsp.review').reject(text)
  end,
  cancel = cancel,
}
for name, command in pairs(offered) do
  subcommands[name] = function(buffer)
    run_offered(buffer, command)
  end
end

---@return string[]
local function names()
  local all = vim.tbl_keys(subcommands)
  table.sort(all)
  return all
end

---@param call vim.api.keyset.create_user_command.command_args
function M.run(call)
  local subcommand, text = call.args:match('^(%S+)%s*(.*)$')
  local run = subcommands[subcommand]
  if run then
    run(vim.api.nvim_get_current_buf(), text)
  else
    say(('no such command: %s; there are %s'):format(subcommand, table.concat(names(), ', ')), vim.log.levels.WARN)
  end
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  if line:match('^%s*%S+%s+%S+%s') then
    return {}
  end
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, names())
end

return M
