// Where the API is: this folder is /door, and a proxy may serve all of it below a path.

export const base = new URL('..', import.meta.url)

/** What the browser keeps by name, for its whole origin. Another Usher may be at another path of it. */
export const nameOfStore = `usher-door${base.pathname.slice(0, -1)}`
