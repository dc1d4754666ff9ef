-- What the server says, without taking the keyboard away: it may come a minute after it was asked for.
local M = {}

local KEPT = 50
local kept = {} ---@type string[] whole messages, the newest last

---@param line string
---@param columns integer
---@return string
local function cut(line, columns)
  if vim.fn.strdisplaywidth(line) <= columns then
    return line
  end
  while vim.fn.strdisplaywidth(line) > columns - 3 do
    line = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 1)
  end
  return line .. '...'
end

---Echoes a text cut to one line, so that Neovim does not ask for Enter; `:CudaLsp messages` has all of it.
---@param text string
---@param ending string what to type next, if there is something
---@param level? integer
local function say_shortly(text, ending, level)
  table.insert(kept, text)
  kept = vim.list_slice(kept, #kept - KEPT + 1)
  local line = text:gsub('%s+', ' ')
  if text:find('\n') or vim.fn.strdisplaywidth(line .. ending) > vim.v.echospace then
    ending = ending ~= '' and ending or '  :CudaLsp messages'
  end
  vim.notify(cut(line, vim.v.echospace - #ending) .. ending, level or vim.log.levels.INFO)
end

---Shows all that the server said, the newest last.
function M.list()
  vim.cmd('botright 10new')
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(table.concat(kept, '\n\n'), '\n'))
  vim.bo[buffer].modifiable = false
  vim.wo.wrap = true
  vim.cmd('normal! G')
end

---Goes on in the coroutine when the user is done typing.
local function await_normal_mode()
  local routine = coroutine.running()
  if vim.api.nvim_get_mode().mode:match('^n') or not routine then
    return
  end
  vim.api.nvim_create_autocmd('ModeChanged', {
    pattern = '*:n',
    once = true,
    callback = vim.schedule_wrap(function()
      coroutine.resume(routine)
    end),
  })
  coroutine.yield()
end

---@param _ lsp.ResponseError?
---@param params lsp.ShowMessageParams
function M.show(_, params)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.INFO }
  say_shortly(params.message, '', levels[params.type])
end

---@param params lsp.ShowMessageRequestParams
function M.ask(err, params, context)
  for _, action in ipairs(params.actions or {}) do
    -- A finished search is there when the user is ready: in the lens, and by :CudaLsp review.
    if action.title == 'Review' then
      say_shortly(params.message, '  :CudaLsp review')
      return vim.NIL
    end
  end
  await_normal_mode()
  return vim.lsp.handlers['window/showMessageRequest'](err, params, context)
end

---Lets the user type a text that the server asks for. Answers with null where nothing was typed.
---@param _ lsp.ResponseError?
---@param params { title: string, prompt: string }
function M.ask_text(_, params)
  await_normal_mode()
  local routine = assert(coroutine.running())
  local answered, text = false, nil
  vim.ui.input({ prompt = ('%s. %s: '):format(params.title, params.prompt) }, function(typed)
    answered, text = true, typed
    if coroutine.status(routine) == 'suspended' then
      coroutine.resume(routine)
    end
  end)
  if not answered then
    coroutine.yield()
  end
  return text and text ~= '' and { text = text } or vim.NIL
end

return M
