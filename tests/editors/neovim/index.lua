-- From a launch to its kernel in another file, and from there back to where it is launched.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local checks, desk = dofile(here .. '/checks.lua'), dofile(here .. '/desk.lua')
local check, wait = checks.check, checks.wait

local KERNEL = { '#pragma once', '', '/* é */ __global__ void halve(float* x) { x[threadIdx.x] *= 0.5f; }' }
local MAIN = { '#include "halve.cuh"', 'int main() {', '    /* 🚀 */ halve<<<1, 32>>>(nullptr);', '}' }

local function at(name, line)
  return vim.endswith(vim.api.nvim_buf_get_name(0), name) and vim.api.nvim_win_get_cursor(0)[1] == line
end

---Asks until the index has the answer.
---@param method string
---@param more? table
local function asked(method, more)
  return wait(60, function()
    local params = vim.lsp.util.make_position_params(0, desk.client.offset_encoding)
    local answer = desk.client:request_sync(method, vim.tbl_extend('force', params, more or {}), 10000, 0)
    return answer and answer.result and answer.result[1]
  end)
end

checks.run(function()
  vim.fn.writefile(KERNEL, vim.env.WORKSPACE .. '/halve.cuh')
  vim.fn.writefile(MAIN, vim.env.WORKSPACE .. '/halves.cu')
  checks.start_plugin()
  desk.open('halves.cu')
  desk.to('halve<<<')
  local found = asked('textDocument/definition')
  check('a launch has a definition', found and vim.endswith(found.uri, '/halve.cuh'), found)
  vim.lsp.buf.definition()
  check('the editor goes there, into another file', wait(20, function()
    return at('halve.cuh', 3)
  end), vim.api.nvim_buf_get_name(0))
  local column = vim.api.nvim_win_get_cursor(0)[2]
  check('to its name', KERNEL[3]:sub(column + 1, column + 5) == 'halve', column)
  check('that buffer has the server too', wait(20, function()
    return #vim.lsp.get_clients({ bufnr = 0, name = 'cuda_lsp' }) == 1
  end))
  local place = asked('textDocument/references', { context = { includeDeclaration = false } })
  local start = place and place.range.start
  check('and is launched from where it was', start and start.line == 2
    and MAIN[3]:sub(start.character + 1, start.character + 5) == 'halve', place)
end)
