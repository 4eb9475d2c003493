#![allow(clippy::unwrap_used)]

use std::io::Read as _;
use std::process::{Command, Stdio};

use super::elf::{Listing, missing_in, parse_listing};
use super::*;

const GLIBC: &str = "\tlinux-vdso.so.1 (0x00007f9e2b786000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f9e2b695000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f9e2441e000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f9e2b788000)
";

fn names(tar: &[u8]) -> Vec<String> {
    tar::Archive::new(tar)
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect()
}

fn own_bundle(extra: &[Extra]) -> Bundle {
    bundle(&std::env::current_exe().unwrap(), extra).unwrap()
}

fn rootfs(bundle: &Bundle) -> Vec<u8> {
    let mut tar = Vec::new();
    bundle.write_rootfs(&mut tar).unwrap();
    tar
}

#[test]
fn glibc_listing_gives_names_and_paths_without_vdso_and_loader() {
    let listing = parse_listing(GLIBC);
    let found: Vec<_> = listing.found.iter().collect();
    assert_eq!(
        found,
        [
            (
                &"libc.so.6".to_owned(),
                &PathBuf::from("/lib/x86_64-linux-gnu/libc.so.6")
            ),
            (
                &"libm.so.6".to_owned(),
                &PathBuf::from("/lib/x86_64-linux-gnu/libm.so.6")
            ),
        ]
    );
    assert!(listing.missing.is_empty());
}

#[test]
fn listing_of_musl_of_paths_with_spaces_and_of_missing_libraries() {
    let musl = parse_listing(
        "\t/lib/ld-musl-x86_64.so.1 (0x7f)\n\tlibc.musl-x86_64.so.1 => /lib/ld-musl-x86_64.so.1 (0x7f)\n",
    );
    assert_eq!(musl.found.len(), 1);
    let spaced = parse_listing("\tliba.so => /opt/my app (2)/liba.so (0x00007f)\n");
    assert_eq!(
        spaced.found["liba.so"],
        PathBuf::from("/opt/my app (2)/liba.so")
    );
    let missing = parse_listing("\tlibz.so.9 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n");
    assert_eq!(missing.missing, ["libz.so.9"]);
    assert_eq!(parse_listing("\tstatically linked\n"), Listing::default());
}

#[test]
fn own_executable_is_laid_out_with_its_loader_and_libraries() {
    let bundle = own_bundle(&[]);
    let tar = rootfs(&bundle);
    let names = names(&tar);
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(names, sorted, "sorted by path");
    let entrypoint = bundle.entrypoint();
    assert!(names.contains(&entrypoint.trim_start_matches('/').to_owned()));
    assert!(
        names.iter().any(|name| name.contains("ld-linux")),
        "{names:?}"
    );
    assert!(
        names.iter().any(|name| name.ends_with("libc.so.6")),
        "{names:?}"
    );
    assert!(names.contains(&"tmp/".to_owned()) && names.contains(&"usr/local/bin/".to_owned()));
    assert_eq!(bundle.changes()[0], format!("ENTRYPOINT [{entrypoint:?}]"));
    for entry in tar::Archive::new(tar.as_slice()).entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 0));
    }
}

#[test]
fn equal_inputs_give_equal_bytes_and_another_file_another_digest() {
    let plain = own_bundle(&[]);
    assert_eq!(rootfs(&plain), rootfs(&own_bundle(&[])));
    assert_eq!(plain.digest().unwrap(), own_bundle(&[]).digest().unwrap());
    let more = own_bundle(&[Extra {
        target: "/etc/passwd".to_owned(),
        content: ExtraContent::Bytes(b"root:x:0:0::/:/\n".to_vec()),
    }]);
    assert_ne!(plain.digest().unwrap(), more.digest().unwrap());
}

#[test]
fn extra_folders_are_copied_with_links_resolved_to_files() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir_all(dir.path().join("conf/sub")).unwrap();
    fs_err::write(dir.path().join("outside"), "linked").unwrap();
    fs_err::write(dir.path().join("conf/sub/a"), "a").unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside"), dir.path().join("conf/link")).unwrap();
    std::os::unix::fs::symlink("..", dir.path().join("conf/sub/loop")).unwrap();
    let spec = format!("{}=/etc//conf/", dir.path().join("conf").display());
    let tar = rootfs(&own_bundle(&[Extra::parse(&spec).unwrap()]));
    let names = names(&tar);
    for name in [
        "etc/conf/",
        "etc/conf/link",
        "etc/conf/sub/a",
        "etc/conf/sub/loop",
    ] {
        assert!(names.contains(&name.to_owned()), "{name} in {names:?}");
    }
    let mut archive = tar::Archive::new(tar.as_slice());
    let mut link = archive
        .entries()
        .unwrap()
        .map(Result::unwrap)
        .find(|entry| entry.path().unwrap().ends_with("conf/link"))
        .unwrap();
    let mut text = String::new();
    link.read_to_string(&mut text).unwrap();
    assert_eq!(text, "linked");
}

#[test]
fn places_that_an_image_cannot_have_are_refused() {
    for bad in ["/etc/hosts=relative", "/etc/hosts=/a/../b", "hosts"] {
        let error = Extra::parse(bad).unwrap_err().to_string();
        assert!(error.contains("its place must"), "{bad}: {error}");
    }
    let exe = std::env::current_exe().unwrap();
    let root = Extra {
        target: "/".to_owned(),
        content: ExtraContent::Bytes(Vec::new()),
    };
    assert!(bundle(&exe, &[root]).is_err());
    let above = Extra {
        target: "/usr/local".to_owned(),
        content: ExtraContent::Bytes(Vec::new()),
    };
    let error = own_bundle(&[above])
        .write_rootfs(std::io::sink())
        .unwrap_err();
    assert!(error.to_string().contains("/usr/local"), "{error}");
}

#[test]
fn files_that_are_no_program_are_named_for_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut foreign = fs_err::read(std::env::current_exe().unwrap()).unwrap();
    foreign[18..20].copy_from_slice(&183_u16.to_le_bytes()); // e_machine: AArch64
    let mut object = fs_err::read(std::env::current_exe().unwrap()).unwrap();
    object[16..18].copy_from_slice(&1_u16.to_le_bytes()); // e_type: relocatable
    let cases: [(&str, &[u8], &str); 7] = [
        ("script", b"#!/bin/sh\n", "it is a script"),
        ("empty", b"", "it is empty"),
        ("text", b"hello", "does not begin with an ELF header"),
        ("mac", &[0xcf, 0xfa, 0xed, 0xfe, 7, 0], "macOS"),
        ("cut", &[0x7f, b'E', b'L', b'F', 2, 1], "damaged or cut off"),
        ("arm", &foreign, "is built for aarch64"),
        ("object", &object, "an object file"),
    ];
    for (name, bytes, expected) in cases {
        let path = dir.path().join(name);
        fs_err::write(&path, bytes).unwrap();
        let error = bundle(&path, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    let absent = bundle(&dir.path().join("absent"), &[]).unwrap_err();
    assert!(matches!(absent, ImageError::Io { .. }), "{absent}");
    let folder = bundle(dir.path(), &[]).unwrap_err();
    assert!(
        folder.to_string().contains("not a regular file"),
        "{folder}"
    );
}

#[test]
fn complaints_of_glibc_and_musl_name_the_library() {
    let glibc = "/x/y: error while loading shared libraries: liba.so.1: cannot open shared object file: No such file or directory";
    assert_eq!(missing_in(glibc), ["liba.so.1"]);
    let musl = "Error loading shared library liba.so.1: No such file or directory (needed by /x)\nError loading shared library libb.so: No such file";
    assert_eq!(missing_in(musl), ["liba.so.1", "libb.so"]);
    assert!(missing_in("Segmentation fault").is_empty());
}

#[test]
fn a_missing_library_is_named_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let exe = fs_err::read(std::env::current_exe().unwrap()).unwrap();
    // Every mention of the library, so that the string table's is among them.
    let (from, to) = (b"libgcc_s.so.1", b"libnone_.so.1");
    let mut changed = exe.clone();
    for at in 0..exe.len() - from.len() {
        if &exe[at..at + from.len()] == from {
            changed[at..at + from.len()].copy_from_slice(to);
        }
    }
    assert_ne!(exe, changed, "the test's own executable needs libgcc_s");
    let path = dir.path().join("program");
    fs_err::write(&path, changed).unwrap();
    let error = bundle(&path, &[]).unwrap_err();
    assert!(
        matches!(&error, ImageError::LibraryNotFound { missing, .. } if missing == &["libnone_.so.1"]),
        "{error}"
    );
    assert!(
        error.to_string().contains("install the packages"),
        "{error}"
    );
}

/// The folder really runs, with its own loader and libraries.
#[test]
fn self_contained_folder_runs_from_elsewhere() {
    let bundle = own_bundle(&[]);
    let dir = tempfile::tempdir().unwrap();
    let mut tar = Vec::new();
    bundle.write_self_contained("sweep", &mut tar).unwrap();
    tar::Archive::new(tar.as_slice())
        .unpack(dir.path())
        .unwrap();
    let command: Vec<String> = bundle
        .self_contained_command("sweep")
        .into_iter()
        .map(|part| {
            if part.starts_with('/') {
                format!("{}{part}", dir.path().display())
            } else {
                part
            }
        })
        .collect();
    let output = Command::new(&command[0])
        .args(&command[1..])
        .args(["--list", "--exact", "no-such-test"])
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("0 tests"), "{text}");
}

#[test]
fn library_folders_are_quoted_for_the_engine() {
    assert_eq!(docker_quote("/a b:/$c\"\\"), "\"/a b:/\\$c\\\"\\\\\"");
}
