-- The default client configuration (see |lsp-config|).
local capabilities = vim.lsp.protocol.make_client_capabilities()
-- Neovim 0.11 shows lenses but does not say that a server may ask for new ones.
capabilities.workspace.codeLens = { refreshSupport = true }
-- Proposals are shown by this plugin, as a diff.
capabilities.experimental = { cudaLsp = { review = true } }

---Echoes a message cut to one line, so that Neovim does not ask for Enter.
---@param message string
---@param ending string
local function say_shortly(message, ending)
  local room = vim.v.echospace - #ending
  local line = message:gsub('%s+', ' ')
  if vim.fn.strdisplaywidth(line) > room then
    line = vim.fn.strcharpart(line, 0, room - 3) .. '...'
  end
  vim.notify(line .. ending)
end

---@param client_id integer
---@return fun(err: lsp.ResponseError?, review: cuda_lsp.Review?)
local function show(client_id)
  return function(err, review)
    if err then
      vim.notify('cuda-lsp: ' .. err.message, vim.log.levels.ERROR)
    elseif type(review) == 'table' then
      require('cuda_lsp.review').open(review, client_id)
    end
  end
end

return {
  cmd = { 'cuda-lsp', 'serve' },
  filetypes = { 'cuda' },
  root_markers = { '.cuda-lsp.toml', 'compile_commands.json', '.git' },
  capabilities = capabilities,
  handlers = {
    ['workspace/codeLens/refresh'] = require('cuda_lsp.lenses').handler(),
    ['cuda-lsp/review'] = function(err, review, context)
      show(context.client_id)(err, review)
    end,
    -- A finished search must not take the keyboard away: its lens and :CudaLsp review are there when the user is ready.
    ['window/showMessageRequest'] = function(err, params, context)
      for _, action in ipairs(params.actions or {}) do
        if action.title == 'Review' then
          say_shortly(params.message, '  :CudaLsp review')
          return vim.NIL
        end
      end
      return vim.lsp.handlers['window/showMessageRequest'](err, params, context)
    end,
    -- The label would be echoed, and a long one asks for Enter.
    ['workspace/applyEdit'] = function(err, params, context)
      params.label = nil
      return vim.lsp.handlers['workspace/applyEdit'](err, params, context)
    end,
  },
  commands = {
    ['cuda-lsp.review'] = function(command, context)
      local client = assert(vim.lsp.get_client_by_id(context.client_id))
      local params = { command = command.command, arguments = command.arguments }
      client:request('workspace/executeCommand', params, show(client.id), context.bufnr)
    end,
  },
}
