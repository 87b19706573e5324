// The search over all pages, and a button that copies a block of code.

const folder = new URL('.', document.currentScript.src)

/** @param attributes of a new element. */
const create = (tag, attributes, ...children) => {
  const element = Object.assign(document.createElement(tag), attributes)
  element.append(...children)
  return element
}

for (const pre of document.querySelectorAll('.guide pre')) {
  // Over plain http browsers have no clipboard.
  if (navigator.clipboard === undefined) break
  const button = create('button', { type: 'button', textContent: 'Copy' })
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(pre.querySelector('code').textContent)
    button.textContent = 'Copied'
  })
  pre.before(create('div', { className: 'copy' }, button))
}

const input = create('input', { type: 'search', placeholder: 'Search', ariaLabel: 'Search all pages' })
const found = create('ul', {})
document.querySelector('header').append(create('search', {}, input, found))

/** Once somebody searches. */
let index
const readIndex = () => {
  index ??= fetch(new URL('search.json', folder)).then((response) => response.json())
  return index
}

const most = 20
input.addEventListener('focus', readIndex)
input.addEventListener('input', async () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
  const sections = words.length === 0 ? [] : await readIndex()
  const has = (text) => words.every((word) => text.toLowerCase().includes(word))
  const inTitle = sections.filter(({ title }) => has(title))
  const inText = sections.filter(({ title, text }) => !has(title) && has(`${title} ${text}`))
  const links = [...inTitle, ...inText]
    .slice(0, most)
    .map(({ page, title, id }) =>
      create('li', {}, create('a', { href: `${new URL(page, folder)}#${id}`, textContent: title })),
    )
  found.replaceChildren(...links)
})
