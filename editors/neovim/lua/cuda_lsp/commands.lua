-- :CudaLsp SUBCOMMAND. What is about a kernel starts from what the server offers as code actions at the cursor.
local M = {}

local KIND = 'refactor.rewrite.cuda'

---@type table<string, string> subcommand to the server's command behind a code action
local offered = {
  ideas = 'cuda-lsp.suggestIdeas',
  optimize = 'cuda-lsp.optimize',
  verify = 'cuda-lsp.verify',
  benchmark = 'cuda-lsp.benchmark',
  review = 'cuda-lsp.review',
}

---@type table<string, string[]> what may stand behind a subcommand, for completion
local scopes = { 'drop-in', 'relaunch', 'plan' }
local choices = { ideas = scopes, optimize = scopes, verify = { 'saved', 'HEAD' } }

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

---Gives what the server offers at the cursor to a function.
---@param buffer integer
---@param only string a kind, with those below it
---@param run fun(client: vim.lsp.Client, actions: lsp.CodeAction[])
local function with_actions(buffer, only, run)
  local client = client_of(buffer)
  if not client then
    return
  end
  local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
  params.context =
    { diagnostics = {}, only = { only }, triggerKind = vim.lsp.protocol.CodeActionTriggerKind.Invoked }
  client:request('textDocument/codeAction', params, function(err, actions)
    if err then
      say(err.message, vim.log.levels.ERROR)
    elseif not actions or #actions == 0 then
      say('the cursor is in no kernel')
    else
      run(client, actions)
    end
  end, buffer)
end

---@param action lsp.CodeAction
---@return string? the server's command behind it, or that it would be
local function command_of(action)
  return type(action.command) == 'table' and action.command.command or vim.tbl_get(action, 'data', 'command')
end

---@param action lsp.CodeAction
---@return table? the kernel that it is about
local function kernel_of(action)
  return vim.tbl_get(action, 'command', 'arguments', 1) or action.data
end

---@param client vim.lsp.Client
---@param buffer integer
---@param action? lsp.CodeAction
local function take(client, buffer, action)
  if not action then
    return
  elseif action.disabled then
    say(action.disabled.reason)
  elseif type(action.command) == 'table' then
    client:exec_cmd(action.command, { bufnr = buffer })
  else
    client:request('codeAction/resolve', action, function(err, resolved)
      if err then
        say(err.message, vim.log.levels.ERROR)
      else
        vim.lsp.util.apply_workspace_edit(resolved.edit, client.offset_encoding)
      end
    end, buffer)
  end
end

---Takes the only one, or the one that the user picks; what cannot be taken says why in its line.
---@param client vim.lsp.Client
---@param buffer integer
---@param actions lsp.CodeAction[]
local function pick(client, buffer, actions)
  if #actions == 1 then
    take(client, buffer, actions[1])
    return
  end
  vim.ui.select(actions, {
    prompt = 'cuda-lsp',
    kind = 'codeaction',
    format_item = function(action)
      return action.disabled and ('%s (not now: %s)'):format(action.title, action.disabled.reason) or action.title
    end,
  }, function(action)
    take(client, buffer, action)
  end)
end

---@param buffer integer
---@param command string
---@param option string one of the choices, a git revision, or empty: the user picks
local function run_offered(buffer, command, option)
  with_actions(buffer, KIND, function(client, actions)
    local fitting = vim.tbl_filter(function(action)
      return command_of(action) == command
    end, actions)
    local open = vim.tbl_filter(function(action)
      return not action.disabled
    end, fitting)
    if #open == 0 or option == '' then
      pick(client, buffer, #open == 0 and { fitting[1] } or open)
    else
      local told = vim.deepcopy(open[1].command)
      told.arguments = { told.arguments[1], option }
      client:exec_cmd(told, { bufnr = buffer })
    end
  end)
end

---Runs a command that takes the kernel at the cursor first.
---@param buffer integer
---@param command string
---@param argument? any
local function run_on_kernel(buffer, command, argument)
  with_actions(buffer, KIND, function(client, actions)
    local kernel = vim.deepcopy(kernel_of(actions[1])) or {}
    kernel.command = nil
    client:exec_cmd({ title = command, command = command, arguments = { kernel, argument } }, { bufnr = buffer })
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

---Takes back whatever was answered about language models.
---@param buffer integer
local function forget(buffer)
  local client = client_of(buffer)
  if client then
    client:exec_cmd({ title = 'forget', command = 'cuda-lsp.forgetConsent' }, { bufnr = buffer })
  end
end

---@type table<string, fun(buffer: integer, text: string)>
local subcommands = {
  menu = function(buffer)
    with_actions(buffer, KIND, function(client, actions)
      pick(client, buffer, actions)
    end)
  end,
  workload = function(buffer)
    with_actions(buffer, KIND .. '.describe', function(client, actions)
      take(client, buffer, actions[1])
    end)
  end,
  try = function(buffer, text)
    run_on_kernel(buffer, 'cuda-lsp.tryIdea', text ~= '' and text or nil)
  end,
  accept = function()
    require('cuda_lsp.review').accept()
  end,
  reject = function(_, text)
    require('cuda_lsp.review').reject(text)
  end,
  cancel = cancel,
  forget = forget,
  messages = function()
    require('cuda_lsp.messages').list()
  end,
}
for name, command in pairs(offered) do
  subcommands[name] = function(buffer, text)
    run_offered(buffer, command, choices[name] and text or '')
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
  local run = subcommands[subcommand or 'menu']
  if run then
    run(vim.api.nvim_get_current_buf(), text or '')
  else
    say(('no such command: %s; there are %s'):format(subcommand, table.concat(names(), ', ')), vim.log.levels.WARN)
  end
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local before = line:match('^%s*%S+%s+(%S+)%s')
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, before and (choices[before] or {}) or names())
end

return M
