-- The default client configuration (see |lsp-config|).
local capabilities = vim.lsp.protocol.make_client_capabilities()
-- Neovim 0.11 shows lenses but does not say that a server may ask for new ones.
capabilities.workspace.codeLens = { refreshSupport = true }
-- What cannot be done is listed with its reason by :CudaLsp, and refused with it where it is taken from another menu.
capabilities.textDocument.codeAction.disabledSupport = true
-- Proposals are shown by this plugin, as a diff, and it lets the user type an idea.
capabilities.experimental = { cudaLsp = { review = true, askText = true } }

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

local messages = require('cuda_lsp.messages')

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
    ['textDocument/inlayHint'] = require('cuda_lsp.inlay_hints').show,
    ['cuda-lsp/askText'] = messages.ask_text,
    ['window/showMessage'] = messages.show,
    ['window/showMessageRequest'] = messages.ask,
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
